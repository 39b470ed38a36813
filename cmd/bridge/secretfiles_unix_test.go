//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/testcert"
	"github.com/mcpbridge/bridge/observe/admin"
	"github.com/mcpbridge/bridge/sessions/redisstore"
)

// TestASecretThatEverybodyMayChangeIsRefused: every file that holds one, and none that others may only read.
func TestASecretThatEverybodyMayChangeIsRefused(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdefgh"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key, _ := testcert.Write(t, dir, 1)
	for name, tc := range map[string]struct {
		file string
		read func() error
	}{
		"admin.token-file":        {secret, func() error { _, err := admin.NewToken(secret); return err }},
		"--token-file":            {secret, func() error { _, err := (&looking{admin: "127.0.0.1:1", tokenFile: secret}).listener(); return err }},
		"auth.client-secret-file": {secret, func() error { _, err := secretOf(&config.Auth{ClientSecretFile: secret}); return err }},
		"auth.client-key": {secret, func() error {
			m := &config.Mount{}
			m.Auth.ClientKey = secret
			_, err := signInOptions(m, zerolog.Nop())
			return err
		}},
		"sampling.key-file": {secret, func() error {
			_, err := newModel(&config.Sampling{Provider: "openai", URL: "https://a.example/v1", Model: "m", KeyFile: secret})
			return err
		}},
		"upstream-tls.key": {key, func() error { _, err := ownPair(&config.ClientTLS{Cert: cert, Key: key}); return err }},
		"tls.key": {key, func() error {
			aside, err := edge.OpenAside(t.Context(), "admin", "127.0.0.1:0", edge.Files{Cert: cert, Key: key}, zerolog.Nop())
			if err == nil {
				aside.Shutdown()
			}
			return err
		}},
		"store.url": {key, func() error {
			_, err := redisstore.Open(t.Context(), "rediss://127.0.0.1:1?cert="+cert+"&key="+key) // where nobody is
			return err
		}},
	} {
		for _, mode := range []os.FileMode{0o644, 0o666} {
			if err := os.Chmod(tc.file, mode); err != nil {
				t.Fatal(err)
			}
			if err := tc.read(); (err != nil && strings.Contains(err.Error(), "can be written to by every user")) != (mode == 0o666) {
				t.Errorf("%s, mode %o: %v", name, mode, err)
			}
		}
	}
}
