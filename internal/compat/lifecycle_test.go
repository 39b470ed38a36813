package compat

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mcp"
)

// initialized returns the answer to an initialize with these params.
func (c *client) initialized(params string) *exchange {
	c.t.Helper()
	return c.call("initialize", params)
}

func TestVersionsThatClientsAskFor_A13_I13(t *testing.T) { // A.2
	w := newWorld(t, mcp.V20251125, nil)
	for asked, want := range map[string]string{
		`"2024-11-05"`: `"2024-11-05"`, `"2025-03-26"`: `"2025-03-26"`, `"2025-06-18"`: `"2025-06-18"`, `"2025-11-25"`: `"2025-11-25"`,
		`"2026-07-28"`: `"2025-11-25"`, `"DRAFT-2026-v1"`: `"2025-11-25"`, `"2026-06-30"`: `"2025-11-25"`, `"1.0"`: `"2025-11-25"`, `""`: `"2025-11-25"`,
	} {
		x := w.newClient().initialized(`{"protocolVersion":` + asked + `,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		expect(t, "A.2: "+asked, member(x.response.Result, "protocolVersion"), want)
	}
	for _, params := range []string{`{"capabilities":{}}`, `{"protocolVersion":7,"capabilities":{}}`} {
		e := w.newClient().initialized(params).response.Error
		if e == nil || e.Code != -32602 {
			t.Fatalf("A.2: %s: %+v", params, e)
		}
		expect(t, "A-15: what the bridge offers", member(e.Data, "supported"), `["2024-11-05","2025-03-26","2025-06-18","2025-11-25"]`)
	}
}

// what was negotiated selects the rules, whatever a header says.
func TestTheNegotiatedVersionSelectsTheRules_A14(t *testing.T) {
	w := newWorld(t, mcp.V20241105, nil)
	w.open()
	w.client.header = http.Header{"Mcp-Protocol-Version": {"2025-11-25"}}
	got := w.listed("tools/list", "tools", `{"name":"t","inputSchema":{"type":"object"},"title":"T","icons":[]}`)
	expect(t, "A-14", got, bareTool)
}

func TestHeaderNamesCompareWithoutCase_A27(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.open()
	for _, name := range []string{"mcp-session-id", "MCP-SESSION-ID", "Mcp-session-ID"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		// Set as they are: Header.Set would spell them in one way.
		req.Header = http.Header{name: {w.client.session}, "mcp-protocol-VERSION": {"2025-11-25"}, "CONTENT-type": {"application/json"}, "aCCept": {"application/json"}}
		res, err := w.client.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("A-27: HTTP %d with %s", res.StatusCode, name)
		}
	}
}

// a client that has not said initialized hears of nothing and is asked
// nothing; what waits for it comes when it does.
func TestNothingReachesAClientBeforeItIsInitialized_A8(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("subscriptions/listen", func(x *incoming) {
		x.acknowledge()
		x.announce("notifications/tools/list_changed", "")
		x.gone()
	})
	r := w.client.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	w.client.session = r.header.Get("Mcp-Session-Id")
	stream := w.client.listen()
	w.client.call("ping", "") // does not count as initialized
	if n := len(w.server.requests("subscriptions/listen")); n != 0 {
		t.Errorf("A-8: %d listens before the client is initialized", n)
	}
	w.client.notify(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if m := stream.next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("A-5: %s", m.Text)
	}
}

func TestInitializeCannotBeCancelled_A10(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	release := make(chan string, 1)
	w.server.on("server/discover", func(x *incoming) {
		receive(w, x, release)
		x.result(richDiscover)
	})
	opened := make(chan *exchange)
	go func() {
		opened <- w.client.start("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	}()
	w.server.wait("server/discover", 1)
	w.newClient().notify(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	release <- "now"
	x := <-opened
	if x.finish(); x.response == nil || x.response.Result == nil {
		t.Fatalf("A-10: %+v", x.response)
	}
	// And over a channel, where the notification is on the same connection.
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- legacy.ServeStdio(context.Background(), in, out, legacy.Options{}, w.mount.Bridge)
		out.Close()
	}()
	release <- "now"
	_, _ = io.WriteString(toBridge, openings(mcp.V20251125)[0]+"\n"+`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}`+"\n")
	m := parse(t, readLine(t, fromBridge))
	expect(t, "A-10", member(m.Result, "protocolVersion"), `"2025-11-25"`)
	toBridge.Close()
	<-served
}

// whatever keeps the server from being used, initialize fails with
// a JSON-RPC error under 200; other statuses mean a server of another age to
// clients.
func TestInitializeFailsUnder200_A25_A24(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.lenient = true // the bridge may ask such a server what else it speaks (E-40)
	for name, answer := range map[string]answer{
		"404":                 func(x *incoming) { x.raw(404, "text/plain", "no") },
		"405":                 func(x *incoming) { x.raw(405, "text/plain", "no") },
		"500":                 func(x *incoming) { x.raw(500, "text/plain", "no") },
		"503":                 func(x *incoming) { x.raw(503, "text/plain", "no") },
		"-32603":              failing(-32603, "no", ""),
		"-32022":              failing(-32022, "no", `{"supported":["2027-01-01"],"requested":"2026-07-28"}`),
		"another version":     result(`{"supportedVersions":["2027-01-01"],"capabilities":{}}`),
		"no versions":         result(`{"capabilities":{}}`),
		"garbage":             func(x *incoming) { x.raw(200, "application/json", "{") },
		"input required":      result(`{"resultType":"input_required","requestState":"x","supportedVersions":[],"capabilities":{}}`),
		"a stream of nothing": func(x *incoming) { x.raw(200, "text/event-stream", "") },
	} {
		w.server.on("server/discover", answer)
		w.mount.Prober.Forget()
		x := w.newClient().initialized(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		e := x.response.Error
		if x.status != http.StatusOK || e == nil || e.Code != -32603 || member(e.Data, "bridge") == "" {
			t.Errorf("A-25: %s: HTTP %d, %s", name, x.status, x.response.Text)
		}
		if e != nil && member(e.Data, "supported") != "" {
			t.Errorf("A-15: %s: the server's versions came as the bridge's: %s", name, x.response.Text)
		}
		if strings.Contains(name, "version") && name != "no versions" && !strings.Contains(e.Message, "2027-01-01") {
			t.Errorf("A-24: %s", e.Message)
		}
	}
}

// C-13: a listen asks for no more than the client was promised.
func TestListensAskForWhatWasAdvertised_C13(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("server/discover", result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}}`))
	w.client.initialize(`{}`)
	expect(t, "C-13", member(last(w.server.wait("subscriptions/listen", 1)).Params, "notifications"), `{"toolsListChanged":true}`)

	silent := newWorld(t, mcp.V20251125, nil)
	silent.server.on("server/discover", result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`))
	silent.client.initialize(`{}`)
	if e := silent.client.call("resources/subscribe", `{"uri":"u:1"}`).response.Error; e == nil || e.Code != -32601 { // B.4
		t.Errorf("B.4: %+v", e)
	}
	if e := silent.client.call("logging/setLevel", `{"level":"info"}`).response.Error; e == nil || e.Code != -32601 {
		t.Errorf("B.4: %+v", e)
	}
	if n := len(silent.server.requests("subscriptions/listen")); n != 0 {
		t.Errorf("C-13: %d listens for nothing", n)
	}
}

// P-3: the bridge begins nothing. A server that asks outside of a call is not
// heard (J-28), and between calls nothing goes up but what the client subscribed to.
func TestTheBridgeStartsNothing_P3(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("subscriptions/listen", func(x *incoming) {
		x.acknowledge()
		x.event(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		x.event(`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`)
		x.announce("notifications/tools/list_changed", "")
		x.gone()
	})
	w.open()
	stream := w.client.listen()
	if m := stream.next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("P-3: the client got %s", m.Text)
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for _, x := range w.server.seen {
		if x.Method != "server/discover" && x.Method != "subscriptions/listen" {
			t.Errorf("P-3: %s went up", x.Method)
		}
	}
}

// E-13: unless told otherwise, nobody but this machine can connect.
func TestTheDefaultListenerIsLocal_E13(t *testing.T) {
	if listen := config.Default().Listen; !strings.HasPrefix(listen, "127.0.0.1:") {
		t.Errorf("E-13: the default is %s", listen)
	}
}

// H-13: on stdio there are no HTTP headers; what the configuration has goes with
// every request.
func TestStdioUsesConfiguredCredentials_H13(t *testing.T) {
	w := newWorld(t, mcp.V20251125, func(o *mount.Options) {
		o.Upstream.Header = http.Header{"Authorization": {"Bearer configured"}}
	})
	overStdio(w)
	for _, method := range []string{"server/discover", "tools/call", "subscriptions/listen"} {
		for _, x := range w.server.wait(method, 1) {
			if got := x.Header.Get("Authorization"); got != "Bearer configured" {
				t.Errorf("H-13, H-1: %s went up with %q", method, got)
			}
		}
	}
}
