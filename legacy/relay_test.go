package legacy

import (
	"io"
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// relaying is a backend that hands everything without a session here on, and
// says what it was shown.
type relaying struct {
	*fakeBackend
	off bool
}

func (b relaying) Relayer() downstream.Relayer { return b }

func (b relaying) Relay(_ *http.Request, msg *jsonrpc.Message, caller func() downstream.Caller) http.Handler {
	if b.off {
		return nil
	}
	method := "none"
	if msg != nil {
		method = msg.Method
	}
	auth := caller().Authorization
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+method+" "+auth+" "+string(body))
	})
}

func TestRequestsWithoutASessionHereAreHandedOnWhole_A16(t *testing.T) {
	_, p := serve(t, Options{}, relaying{fakeBackend: newFake()})
	p.header.Set("Authorization", "mine")
	for _, tc := range []struct{ session, method, body, want string }{
		{"", http.MethodPost, initialize(mcp.V20250618), "POST initialize mine " + initialize(mcp.V20250618)},
		{"", http.MethodPost, ` {"jsonrpc": "2.0","id":1,"method":"x"}`, `POST x mine  {"jsonrpc": "2.0","id":1,"method":"x"}`},
		{"theirs", http.MethodPost, ping, "POST echo mine " + ping},
		{"theirs", http.MethodPost, "[" + ping + "]", "POST none mine [" + ping + "]"},
		{"theirs", http.MethodGet, "", "GET none mine "},
		{"", http.MethodGet, "", "GET none mine "},
		{"theirs", http.MethodDelete, "", "DELETE none mine "},
	} {
		p.session = tc.session
		want(t, tc.method+" of session "+tc.session, text(t, p.do(p.request(tc.method, tc.body))), tc.want)
	}
	p.session = ""
	want(t, "what is no message stays here", p.post("{").StatusCode, http.StatusBadRequest)
	p.header.Set("Origin", "https://evil.example")
	want(t, "a foreign page", p.get("").StatusCode, http.StatusForbidden)
}

func TestModernRequestsAndSessionsHereAreNotHandedOn_A16(t *testing.T) {
	b := relaying{fakeBackend: newFake(), off: true}
	b.modern = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "modern") })
	h, p := serve(t, Options{}, &b)
	p.initialize(mcp.V20250618)
	b.off = false
	want(t, "a session here", p.post(ping).StatusCode, http.StatusOK)
	_, got := p.call(ping)
	want(t, "its answer", got, `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	if !h.Holds(p.session) || h.Holds("another") || h.Holds("") {
		t.Error("Holds is wrong about the sessions")
	}
	p.session = ""
	_, got = p.call(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`)
	want(t, "a modern request", got, "modern")
}
