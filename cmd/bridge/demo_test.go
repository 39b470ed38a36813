package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestTheDemoOpensTheView: the browser gets an address that opens it, token included.
func TestTheDemoOpensTheView(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for a browser is a shell script")
	}
	dir := t.TempDir()
	stub, opened := filepath.Join(dir, "browser"), filepath.Join(dir, "opened")
	script := "#!/bin/sh\nprintf %s \"$1\" > " + opened + ".new && mv " + opened + ".new " + opened + "\n"
	if err := os.WriteFile(stub, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := demonstrate(t, "--browser", stub)
	p.expect("Your browser was asked to show both hops")
	var address string
	for ends := time.Now().Add(patience); address == "" && time.Now().Before(ends); <-time.After(5 * time.Millisecond) {
		text, _ := os.ReadFile(opened)
		address = string(text)
	}
	page, token, found := strings.Cut(address, "#token=")
	if !found {
		t.Fatalf("the browser got %q", address)
	}
	p.expect("Booked")
	status, body := seen(t, page, token)
	if status != http.StatusOK || !strings.Contains(body, "<h1>Overview</h1>") {
		t.Errorf("%d %s", status, body)
	}
	if _, text := seen(t, page+"metrics", token); !strings.Contains(text, `mcpbridge_questions_total{kind="form",mount="/mcp",outcome="accept"} `) {
		t.Error("the demo has no metrics")
	}
}

// demonstrate runs the demo, whose process says what the demo does.
func demonstrate(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{t: t, errors: &lines{grown: make(chan struct{}, 1)}, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = run(ctx, append([]string{"demo"}, args...), surroundings{in: strings.NewReader(""), out: p.errors, err: io.Discard, environ: []string{"CI=true"}})
	}()
	t.Cleanup(func() {
		cancel()
		_ = p.wait() // it was interrupted
	})
	return p
}

func TestABrowserOpensOnlyForAPerson(t *testing.T) {
	local := []string{"DISPLAY=:0"}
	for name, tc := range map[string]struct {
		show   string
		person bool
		env    []string
		opens  bool
	}{
		"a person":        {"auto", true, local, true},
		"nobody":          {"auto", false, local, false},
		"over SSH":        {"auto", true, []string{"DISPLAY=:0", "SSH_CONNECTION=x"}, false},
		"not wanted":      {"off", true, local, false},
		"a named browser": {"firefox", false, nil, true},
	} {
		if (opener(tc.show, tc.person, tc.env) != nil) != tc.opens {
			t.Errorf("%s: opens: %v", name, !tc.opens)
		}
	}
}
