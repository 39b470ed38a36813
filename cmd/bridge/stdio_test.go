package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/mcp"
)

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	listTools  = `{"jsonrpc":"2.0","id":"two","method":"tools/list"}`
)

// dialogue runs `bridge stdio` with a client that sends lines and reads one
// answer to each, then closes the input.
func dialogue(t *testing.T, args []string, lines ...string) (answers []string, log string) {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	var errors bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- run(t.Context(), append([]string{"stdio"}, args...), surroundings{in: in, out: out, err: &errors})
		out.Close()
	}()
	answer := bufio.NewReader(receive)
	for _, line := range lines {
		if _, err := io.WriteString(send, line+"\n"); err != nil {
			t.Fatal(err)
		}
		text, err := answer.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, text)
	}
	send.Close()
	if rest, err := io.ReadAll(answer); err != nil || len(rest) > 0 {
		t.Errorf("after the last answer: %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Errorf("the program ended with %v\n%s", err, &errors)
	}
	return answers, errors.String()
}

func TestStdioInFrontOfACommandAndOfAURL(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered,
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"of_url","inputSchema":{"type":"object"}}]}}`})
	for tool, args := range map[string][]string{
		"of_url":   {"--upstream", server.URL},
		"of_child": append([]string{"--"}, cannedCommand(t)...),
	} {
		answers, log := dialogue(t, args, initialize, listTools)
		if !strings.Contains(answers[0], `"protocolVersion":"2025-06-18"`) || !strings.Contains(answers[1], tool) || !strings.Contains(answers[1], `"two"`) {
			t.Errorf("%q answers %q\n%s", args, answers, log)
		}
	}
}

func TestStdioEndsWhenAskedTo(t *testing.T) {
	in, send := io.Pipe()
	defer send.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"stdio", "--upstream", deadURL}, surroundings{in: in, out: io.Discard, err: io.Discard}); err != nil {
		t.Error(err)
	}
}

// gone is the output to a client that is not there any more.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestStdioEndsQuietlyWhenTheClientIsGone(t *testing.T) {
	in, send := io.Pipe()
	defer send.Close()
	go func() { _, _ = io.WriteString(send, initialize+"\n") }()
	if err := run(t.Context(), []string{"stdio", "--upstream", deadURL}, surroundings{in: in, out: gone{}, err: io.Discard}); err != nil {
		t.Error(err)
	}
}

func TestStdioServesOneUpstream(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(file, []byte("upstreams: [{path: /a, upstream: 'http://a'}, {path: /b, upstream: 'http://b'}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "stdio", "--config", file); !strings.Contains(err.Error(), "the configuration has 2") {
		t.Error(err)
	}
}

// TestWhoStartsACommandReadsItsLastWords: over stdio that is its user, over HTTP anybody.
func TestWhoStartsACommandReadsItsLastWords(t *testing.T) {
	answers, _ := dialogue(t, append([]string{"--"}, cannedKind(t, "dead")...), initialize)
	if !strings.Contains(answers[0], "(exit status 3); its last words: cannot open the database") {
		t.Errorf("over stdio: %s", answers[0])
	}
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--"}, cannedKind(t, "dead")...)...)
	if _, body := p.post("/mcp", initialize); strings.Contains(body, "database") || !strings.Contains(body, "(exit status 3); its messages are in the log") {
		t.Errorf("over HTTP: %s", body)
	}
}

// TestStdioSaysHowToSignIn: the desktop shows what initialize ended with, and nothing else.
func TestStdioSaysHowToSignIn(t *testing.T) {
	server := refusing(t)
	for header, want := range map[string]string{
		"X-Other: 1":                 "wants a sign-in (HTTP 401): start the bridge with --auth.mode agent, or give it a token in BRIDGE_HEADERS",
		"Authorization: Bearer hush": "refused the configured Authorization (HTTP 401): correct it in BRIDGE_HEADERS",
	} {
		answers, log := dialogue(t, []string{"--upstream", server.URL, "--headers", header}, initialize)
		if !strings.Contains(answers[0], want) || strings.Contains(answers[0]+log, "hush") {
			t.Errorf("%s\n%s", answers[0], log)
		}
	}
}

func TestServeInFrontOfACommand(t *testing.T) {
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--"}, cannedCommand(t)...)...)
	p.expect("the upstream is ready")
	if status, body := p.post("/mcp", listTools); status != http.StatusOK || !strings.Contains(body, "of_child") {
		t.Errorf("/mcp answers %d %s", status, body)
	}
}

func TestCheckOfACommand(t *testing.T) {
	out, err := runCheck(t, append([]string{"--"}, cannedCommand(t)...)...)
	if err != nil || !strings.Contains(out, "usable         yes") || !strings.Contains(out, "tools          1") {
		t.Errorf("check says %v and\n%s", err, out)
	}
}

func TestOldTransportsAreServedBesideTheEndpoint(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	for path, messages := range map[string]string{"/sse": "/messages", "/mcp/sse": "/mcp/messages"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(resp.Body)
		event, _ := reader.ReadString('\n')
		data, _ := reader.ReadString('\n')
		resp.Body.Close()
		if event != "event: endpoint\n" || !strings.HasPrefix(data, "data: "+messages+"?sessionId=") {
			t.Errorf("%s begins with %q %q", path, event, data)
		}
	}
	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"mcp"}}).Dial("ws://"+p.address+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(initialize)); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := ws.ReadMessage(); err != nil || !strings.Contains(string(msg), `"protocolVersion":"2025-06-18"`) {
		t.Errorf("WebSocket answers %s, %v", msg, err)
	}
}
