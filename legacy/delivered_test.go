//go:build linux

package legacy

import (
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// Who keeps an answer for a client that may have lost it asks the reply whether it has: one whose connection broke has
// not, however far the response was, until it comes back for the stream.
func TestAReplyTellsWhetherItsClientHasTheAnswer_E12(t *testing.T) {
	for name, begun := range map[string]func(h *HTTP, l *wire, k *call){
		"before a response": func(*HTTP, *wire, *call) {},
		"during a stream":   func(_ *HTTP, l *wire, k *call) { k.Send([]byte(note)); l.response() },
		"in a parked one":   func(h *HTTP, l *wire, k *call) { k.Send([]byte(note)); l.response(); l.waitParked(h) },
	} {
		for _, tc := range []struct{ stays, alone bool }{{true, false}, {false, false}, {true, true}, {false, true}} {
			t.Run(name, func(t *testing.T) {
				b := newFake()
				h, p := serve(t, Options{}, b)
				if !tc.alone {
					p.initialize(mcp.V20251125)
				}
				l, r := dialWire(t, p), p.request(http.MethodPost, hold)
				if tc.alone {
					r.Header.Set("MCP-Protocol-Version", string(mcp.V20251125))
				}
				l.send(r)
				k := <-b.held
				begun(h, l, k)
				want(t, "attached", k.Attached(), true)
				if !tc.stays {
					l.conn.Close()
					eventually(t, "the hang-up shows", func() bool { return !k.Attached() })
				}
				k.finish(`{}`)
				if tc.stays {
					eventually(t, "the answer has left", k.Delivered)
					return
				}
				want(t, "attached to nobody", k.Attached(), false)
				want(t, "delivered to nobody", k.Delivered(), false)
				if name != "before a response" && !tc.alone {
					readEvents(t, p.get("1-1")).rest()
					want(t, "fetched", k.Delivered(), true)
				}
			})
		}
	}
}
