package legacy

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/mcp"
)

// retire begins to retire an endpoint, and waits until nothing happens any more.
func retire(t *testing.T, h *HTTP) (over <-chan error) {
	down := make(chan error, 1)
	go func() { down <- h.Retire(t.Context()) }()
	synctest.Wait()
	return down
}

// One client's slow call is no reason to refuse the others, whom another endpoint can serve.
func TestARetiredEndpointKeepsTheSessionsOfRunningCallsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, busy := servePipe(t, Options{}, b)
		idle, listens := *busy, *busy
		busy.initialize(mcp.V20251125)
		idle.initialize(mcp.V20251125)
		listens.initialize(mcp.V20251125)
		stream := readEvents(t, listens.get(""))
		answer := busy.async(hold)
		k := <-b.held
		down := retire(t, h)
		stream.rest()               // ends
		time.Sleep(2 * vacateEvery) // in the bubble: streams end beside the first look
		for what, p := range map[string]*peer{"an idle session": &idle, "one that listened": &listens} {
			want(t, what+" is here", h.Holds(p.session), false)
		}
		want(t, "the one with a call is here", h.Holds(busy.session), true)
		refused := busy.post(ping)
		if said := text(t, refused); refused.StatusCode != http.StatusServiceUnavailable || strings.Contains(said, "shutting down") || !strings.Contains(said, "new settings") {
			t.Errorf("another request of it gets %d %s", refused.StatusCode, said)
		}
		k.finish(`{}`)
		want(t, "the call", (<-answer).StatusCode, 200)
		want(t, "the end", <-down, error(nil))
	})
}

// A session that is a connection ends with that, so that its client opens another one: where the bridge has other settings, or at another
// replica.
func TestAnEndpointThatEndsLetsConnectionsWithoutCallsGo(t *testing.T) {
	for why, ends := range map[string]func(*HTTP, context.Context) error{"new settings": (*HTTP).Retire, "shutting down": (*HTTP).Shutdown} {
		b := newFake()
		h, p := serveAll(t, Options{}, b)
		_, idleStream, _ := p.openSSE()
		idle, _, err := dial(t, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		busy, _, err := dial(t, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		say(t, busy, initialize(mcp.V20251125))
		frame(t, busy)
		say(t, busy, hold)
		k := <-b.held
		down := make(chan error, 1)
		go func() { down <- ends(h, t.Context()) }()
		idleStream.rest() // ends
		if _, _, err := idle.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) || !strings.Contains(err.Error(), why) {
			t.Errorf("an idle connection ends with %v", err)
		}
		say(t, busy, `{"jsonrpc":"2.0","id":"another","method":"ping"}`)
		if said := frame(t, busy); !strings.Contains(said, why) {
			t.Errorf("another request beside the call gets %s", said)
		}
		k.finish(`{}`)
		if said := frame(t, busy); !strings.Contains(said, `"result"`) {
			t.Errorf("the call gets %s", said)
		}
		want(t, "the end", <-down, error(nil))
	}
}
