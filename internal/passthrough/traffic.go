package passthrough

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/mcp"
)

// shuttingDown is what a request is told that comes too late.
const shuttingDown = "the bridge is shutting down"

// traffic counts the requests under way and ends them in order.
type traffic struct {
	gate     *gate.Gate
	draining context.Context // ends with Drain
	drain    context.CancelFunc
	closing  context.Context // ends with Close
	cut      context.CancelFunc
}

func (t *traffic) open() {
	t.gate = gate.New()
	t.draining, t.drain = context.WithCancel(context.Background())
	t.closing, t.cut = context.WithCancel(context.Background())
}

// enter counts a request in. Its context ends with the client's interest or when
// the traffic is to end; leave is nil when that is over already.
func (t *traffic) enter(r *http.Request) (ctx context.Context, leave func()) {
	if !t.gate.Enter() {
		return nil, nil
	}
	ends := t.closing
	if endless(r) {
		ends = t.draining
	}
	ctx, cancel := context.WithCancel(r.Context())
	release := context.AfterFunc(ends, cancel)
	return ctx, func() {
		release()
		cancel()
		t.gate.Exit()
	}
}

// endless reports a request whose response never ends by itself: nobody waits
// for that when the traffic stops.
func endless(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get(mcp.HeaderMethod) == mcp.MethodListen
}

// Active returns the number of requests under way.
func (t *traffic) Active() int { return t.gate.Count() }

// Drain takes no further requests and ends those that would never end.
func (t *traffic) Drain() {
	t.gate.Shut()
	t.drain()
}

// Shutdown drains and returns when every request has ended. When ctx ends first
// it cuts them off and returns its error.
func (t *traffic) Shutdown(ctx context.Context) error {
	t.Drain()
	err := t.gate.Wait(ctx)
	t.cut()
	_ = t.gate.Wait(context.Background()) // which doesn't end
	return err
}

// Close cuts every request off.
func (t *traffic) Close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Shutdown(ended) // its error is that of the context
}
