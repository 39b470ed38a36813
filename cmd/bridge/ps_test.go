package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testport"
)

// desktop starts a `bridge stdio` with a session that has a call under way, and returns
// the environment that it shares with the commands, and its input.
func desktop(t *testing.T) (environ []string, send io.Writer) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // where bridges of others may be
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	environ = []string{"XDG_RUNTIME_DIR=" + dir}
	server := peers.NewServer(t, peers.ServerOptions{})
	in, input := io.Pipe()
	output, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(t.Context(), []string{"stdio", "--upstream", server.URL}, surroundings{in: in, out: out, err: io.Discard, environ: environ})
		out.Close()
	}()
	answers := bufio.NewReader(output)
	_, _ = io.WriteString(input, strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)+"\n")
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(input, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{}}}`+"\n")
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "elicitation/create") {
		t.Fatalf("%s %v", line, err)
	}
	t.Cleanup(func() {
		input.Close()
		_, _ = io.Copy(io.Discard, answers)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "mcp-bridge", "*")); len(left) > 0 {
			t.Errorf("%q is left behind", left)
		}
	})
	return environ, input
}

// TestPsShowsWhatADesktopClientsBridgeDoes without any setting.
// TestLookingWhereNoAdminListenerIsAsksForTheAddress: nobody is there, or somebody else.
func TestLookingWhereNoAdminListenerIsAsksForTheAddress(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer page.Close()
	for address, want := range map[string]string{
		testport.Closed + "#token=hush": "no bridge answers at " + testport.Closed + ": connection refused; does it run, and is that its admin.listen?",
		other.URL:                       "answers 404 Not Found; is that the address of admin.listen, and not the one for clients?",
		page.URL:                        "answers something else than a bridge's admin listener does; is that the address of admin.listen",
	} {
		if err := fails(t, nil, "ps", "--admin", address); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPsShowsWhatADesktopClientsBridgeDoes(t *testing.T) {
	environ, _ := desktop(t)
	text := prints(t, environ, "ps")
	for _, says := range []string{"stdio ", "ready", "person", "greet", "Waits for a person, who was asked to fill in a form", "2025-06-18"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in\n%s", says, text)
		}
	}
}

// TestWatchShowsMessagesAsTheyPass, and why a call waits.
func TestWatchShowsMessagesAsTheyPass(t *testing.T) {
	environ, send := desktop(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{grown: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"watch"}, surroundings{in: strings.NewReader(""), out: out, err: io.Discard, environ: environ})
	}()
	p := &process{t: t, errors: out}
	p.expect("bridge ⇄ server") // and from then on messages are kept
	p.expect("Waits for a person")
	_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"secret":"hush"}}}`+"\n")
	for _, says := range []string{"→ tools/call", "→ round 1: tools/call", "← complete"} {
		p.expect(says)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if strings.Contains(out.String(), "hush") {
		t.Errorf("it tells what a message says:\n%s", out)
	}
}

func TestPsOfAServiceNeedsItsToken(t *testing.T) {
	p := start(t, "serve", "--upstream", deadURL, "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0")
	url, token := adminOf(p)
	if err := fails(t, nil, "ps", "--admin", url); !strings.Contains(err.Error(), "--token-file") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	for _, args := range [][]string{{"--admin", url + "#token=" + token}, {"--admin", address, "--token-file", file}} {
		if text := prints(t, nil, append([]string{"ps"}, args...)...); !strings.Contains(text, "serve  /mcp → http://127.0.0.1") {
			t.Errorf("%q: %s", args, text)
		}
	}
	if err := fails(t, nil, "watch", "NOBODY", "--admin", address, "--token-file", file); !strings.Contains(err.Error(), "no session") {
		t.Error(err)
	}
	if err := fails(t, nil, "ps", "--admin", ":"); exitCode(err) != exitUsage {
		t.Error(err)
	}
}

func TestPsSaysWhenThereIsNothingToSee(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if err := fails(t, []string{"XDG_RUNTIME_DIR=" + t.TempDir()}, "ps"); !strings.Contains(err.Error(), "no `bridge stdio`") {
		t.Error(err)
	}
}
