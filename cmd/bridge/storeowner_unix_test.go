//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/config"
)

// nobody is a user that tests can give files to.
const nobody = 65534

func refusesStore(t *testing.T, what string, settings config.Store, says ...string) {
	t.Helper()
	s, _, err := openStore(t.Context(), settings)
	if err == nil {
		_ = s.Close()
		t.Errorf("%s: was taken", what)
		return
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v lacks %q", what, err, part)
		}
	}
}

func TestStoreFilesThatOthersCanWriteToAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	settings := config.Store{URL: "file:" + path}
	s, _, err := openStore(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	named := config.Store{URL: settings.URL, Keys: path + ".keys"}
	for file, setting := range map[string]string{path + ".keys": "store.keys", path: "store.url", path + ".journal": "store.url"} {
		chmod(t, file, 0o666)
		refusesStore(t, file, settings, setting, "chmod 600 "+file)
		refusesStore(t, file+", keys named", named, setting, "chmod 600 "+file)
		chmod(t, file, 0o600)
	}
	if notes, err := checkStore(t.Context(), settings); err != nil || len(notes) != 0 {
		t.Errorf("notes %v, %v", notes, err)
	}
	chmod(t, path+".keys", 0o644) // as Kubernetes mounts secrets
	if notes, err := checkStore(t.Context(), settings); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "others may read "+path+".keys") {
		t.Errorf("notes %v, %v", notes, err)
	}
}

func TestKeysThatSomebodyElsePutBesideAStoreAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to somebody else; TestWhoseAFileMustBe needs none")
	}
	path, keys := filepath.Join(t.TempDir(), "s.db"), keyFile(t)
	if err := os.Rename(keys, path+".keys"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path+".keys", nobody, nobody); err != nil {
		t.Fatal(err)
	}
	settings := config.Store{URL: "file:" + path}
	refusesStore(t, "planted keys", settings, "store.keys", path+".keys belongs to another user (65534)", "chown 0")
	if _, err := checkStore(t.Context(), settings); err == nil {
		t.Error("config validate takes them")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a store was made under them")
	}
	settings.Keys = path + ".keys" // somebody has named them
	if notes, err := checkStore(t.Context(), settings); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "belongs to another user") {
		t.Errorf("notes %v, %v", notes, err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
