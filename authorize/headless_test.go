package authorize

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// headless is an agent on a machine without a display, and its log.
func headless(t *testing.T, i *issuer.Issuer) (*Agent, *bytes.Buffer) {
	t.Helper()
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "BROWSER"} {
		t.Setenv(name, "")
	}
	t.Setenv("CI", "true") // on systems whose browser needs no display
	log := &bytes.Buffer{}
	return newAgent(t, i, func(o *Options) { o.Browser, o.Log = nil, zerolog.New(log) }), log
}

// Without a display the person gets a code for another device, where there is that.
func TestNoDisplayButACode(t *testing.T) {
	i := issuer.New(t)
	a, _ := headless(t, i)
	var pending *Pending
	if err := a.Invite(t.Context(), Refusal{Status: http.StatusUnauthorized}); !errors.As(err, &pending) || pending.Code == "" || pending.Opened ||
		!strings.Contains(err.Error(), "on any device, enter the code "+pending.Code) {
		t.Fatalf("told %v", err)
	}
	i.Set(func() { i.Agreed = true })
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 0 {
		t.Errorf("%v; %d pages", err, i.Tabs)
	}
}

// Else the address, in the answer and in the log; nobody is told that a browser was opened.
func TestNoDisplayAndNoCode(t *testing.T) {
	i := issuer.New(t)
	i.Meta = map[string]any{"device_authorization_endpoint": nil}
	a, log := headless(t, i)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Renew(ctx, Refusal{Status: http.StatusUnauthorized}) }()
	var pending *Pending
	if err := a.Invite(t.Context(), Refusal{Status: http.StatusUnauthorized}); !errors.As(err, &pending) || pending.URL == "" {
		t.Fatalf("told %v", err)
	}
	cancel()
	if err := <-done; !errors.As(err, &pending) || pending.Opened || !strings.Contains(err.Error(), "Open this address in a browser on this machine, then try again: "+i.URL) {
		t.Errorf("told %v", err)
	}
	browse(pending.URL)
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 {
		t.Errorf("%v; %d pages", err, i.Tabs)
	}
	a.Close()
	if said := log.String(); strings.Count(said, "sign in: open this address in a browser") != 1 {
		t.Errorf("the log says %s", said)
	}
}

// Files have their mode from their birth: nothing here makes one that others may read for
// a moment.
func TestFilesAreBornWithTheirMode(t *testing.T) {
	for name, text := range sources(t) {
		for _, loose := range []string{"os.Create(", "os.WriteFile(", "os.OpenFile(", "Chmod(", "os.Mkdir("} {
			if strings.Contains(text, loose) {
				t.Errorf("%s uses %s: there is package sealed", name, loose)
			}
		}
	}
}

// sources are the files of the package and of the one below it, without tests.
func sources(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	below, _ := filepath.Glob("sealed/*.go")
	if names = append(names, below...); err != nil || len(below) == 0 {
		t.Fatal(names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}
