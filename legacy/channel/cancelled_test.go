package channel

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
)

// starting is the modern conversation of a server that takes its time to start, and hears of no
// cancellation meanwhile.
type starting struct {
	endless
	cancelled chan string // methods of what was
}

func (s *starting) Notify(downstream.Caller, jsonrpc.Message) {}

func (s *starting) Serve(ctx context.Context, _ downstream.Caller, req downstream.Request, out downstream.Reply) {
	<-ctx.Done()
	if context.Cause(ctx) == downstream.ErrCancelled {
		s.cancelled <- req.Method
	}
	out.Abandon()
}

// A modern request is cancelled however early that comes, and its id means the next one then.
func TestAnEarlyCancellationOfAModernRequestIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv := &starting{cancelled: make(chan string, 4)}
		c := New(t.Context(), Options{MaxInFlight: func() int { return 4 }}, nil, downstream.Caller{}, observe.Stdio, func([]byte) error { return nil })
		c.modern = conv
		var got []string
		for _, method := range []string{"tools/call", "subscriptions/listen", "prompts/get"} {
			c.receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, method))
			synctest.Wait() // it has begun
			if method == "prompts/get" {
				continue // it stays
			}
			c.receive([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
			synctest.Wait()
			select {
			case was := <-conv.cancelled:
				got = append(got, was)
			default:
			}
		}
		if want := []string{"tools/call", "subscriptions/listen"}; !slices.Equal(got, want) {
			t.Errorf("cancelled: %q, want %q", got, want)
		}
		if c.running != 1 {
			t.Errorf("%d requests are under way, want that which nobody cancelled", c.running)
		}
		c.Close(ErrDisconnected)
	})
}
