package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
)

func TestTheReportSaysWhoNeedsTheBridge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clients.json")
	p := start(t, "serve", "--upstream", peers.NewServer(t, peers.ServerOptions{}).URL, "--listen", "127.0.0.1:0", "--admin.report", file)
	book(t, p.address)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "User-Agent": "codex/2.0",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"} {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p.stop()
	_ = p.wait() // its error is for the test to judge
	text := prints(t, nil, "report", file)
	for _, says := range []string{"1 needs the bridge, and 1 could go direct", "2025-11-25: 1 session,", "questions (2 answered)", "codex 2.0, 2026-07-28: 1 request,"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in\n%s", says, text)
		}
	}
	if strings.Contains(text, "Lovelace") {
		t.Error("the report tells what a call says")
	}
	if err := fails(t, nil, "report", file+".missing"); !strings.Contains(err.Error(), "writes its file a minute after its start") {
		t.Errorf("of a report that is not there: %v", err)
	}
}
