package relay

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// What a server says when a session opens is kept for as long as that lasts: it is short, or
// there is no session.
func TestWhatASessionKeepsOfItsServerIsShort(t *testing.T) {
	for name, test := range map[string]struct{ session, version, want string }{
		"the longest id":     {strings.Repeat("s", 1<<10), "2025-11-25", ""},
		"a longer id":        {strings.Repeat("s", 1<<10+1), "2025-11-25", "session id"},
		"an id with a space": {"a b", "2025-11-25", "session id"},
		"an id in Latin-1":   {"caf\xe9", "2025-11-25", "session id"},
		"a long version":     {"s", strings.Repeat("v", 65), "protocolVersion"},
		"an empty version":   {"s", "", "protocolVersion"},
		"an unknown version": {"s", "2024-10-07", ""},
		"no session":         {"", "2025-11-25", ""},
	} {
		t.Run(name, func(t *testing.T) {
			front := over(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Mcp-Session-Id", test.session)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"`+test.version+`"}}`)
			})
			_, _, err := open(t, Options{Server: front}, newClient())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("told %v", err)
			}
		})
	}
}

// So is the address to which messages go where the transport is HTTP+SSE.
func TestAnEndpointOfAServerIsShort(t *testing.T) {
	front := over(t, func(w http.ResponseWriter, _ *http.Request) {
		events(w, "event: endpoint\ndata: /mcp?"+strings.Repeat("x", 8<<10)+"\n\n")
	})
	front.opt.MaxMessage = 64 << 10
	if _, _, err := open(t, Options{Server: front.SSE()}, newClient()); err == nil || !strings.Contains(err.Error(), "8 KiB") {
		t.Errorf("told %v", err)
	}
}

// Of an event whose id is long no stream is resumed, and nothing is kept.
func TestALongEventIDIsNoPlaceToResumeFrom(t *testing.T) {
	s := &legacyServer{answer: func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		events(w, "id: "+strings.Repeat("e", 4<<10+1)+"\nretry: 1\ndata: \n\n")
	}}
	front := over(t, s.serve)
	front.opt.MaxMessage = 64 << 10
	conv, _, err := open(t, Options{Server: front}, newClient())
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, conv, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`).wait(t); !strings.Contains(got, "ended before the response") {
		t.Errorf("got %.200s", got)
	}
	for _, seen := range s.all() {
		if strings.HasPrefix(seen, http.MethodGet) {
			t.Errorf("the stream was resumed: %.80s", seen)
		}
	}
}

// The head of a response is in memory before anybody can be charged for it.
func TestTheHeadOfAResponseIsBounded(t *testing.T) {
	_, _, conv := connected(t, func(w http.ResponseWriter, _ *http.Request, msg *jsonrpc.Message) {
		w.Header().Set("X-Long", strings.Repeat("x", 80<<10))
		plain(w, response(string(msg.ID)))
	})
	if got := ask(t, conv, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`).wait(t); !strings.Contains(got, "error") {
		t.Errorf("got %.200s", got)
	}
}
