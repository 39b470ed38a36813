package subscriptions

import (
	"context"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// talker is a server that says long things on its listens.
type talker struct {
	upstream.Caller
	told chan upstream.Held
}

func (s *talker) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	notify(jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":{"resourceSubscriptions":["x:"]}}`)})
	s.told <- call.Held
	<-ctx.Done()
	return ctx.Err()
}

// What a server announces is charged while it comes, to the principal whose listen it is or to
// the session that is subscribed.
func TestAnnouncementsAreChargedWhileTheyCome(t *testing.T) {
	for name, listen := range map[string]func(h *Hub, who Identity) (end func()){
		"lists": func(h *Hub, who Identity) func() {
			h.Join(&ear{}, who, tools)
			return h.Close
		},
		"resources": func(h *Hub, who Identity) func() {
			r := h.Resources(&ear{}, who, 8)
			if err := r.Subscribe("", "", "x:"); err != nil {
				t.Fatal(err)
			}
			return r.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &talker{told: make(chan upstream.Held)}
			h := NewHub(Options{Upstream: s, Log: zerolog.Nop(), Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil)})
			defer h.Close()
			memory, who := budget.New(16<<20), as("a")
			var err error
			if who.Account, err = memory.Open("a"); err != nil {
				t.Fatal(err)
			}
			end := listen(h, who)
			held, before := <-s.told, memory.Used()
			if held == nil {
				end()
				t.Fatal("nobody is told of it")
			}
			if err := held.Set(1 << 20); err != nil || memory.Used() != before+1<<20 {
				t.Errorf("%d bytes are charged, %v", memory.Used()-before, err)
			}
			if err := held.Set(15 << 20); !budget.Short(err) {
				t.Errorf("too much is refused with %v", err)
			}
			end()
			h.Close()
			if left := memory.Used(); left > before {
				t.Errorf("%d bytes are still charged", left)
			}
		})
	}
}
