package passthrough

import (
	"context"
	"net/http"
	"time"

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
// the traffic is to end; leave is nil when that is over already. A client that reads nothing
// of its response holds up no end: what is cut off has lastWords.
func (t *traffic) enter(w http.ResponseWriter, r *http.Request) (ctx context.Context, leave func()) {
	if !t.gate.Enter() {
		return nil, nil
	}
	ends := t.closing
	if endless(r) {
		ends = t.draining
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(ends, func() { cancel(stopped{}) })
	spare := t.hurry(w)
	return ctx, func() {
		release()
		cancel(nil)
		spare()
		t.gate.Exit()
	}
}

// lastWords is how long a client may take for what it is still told when its request was cut off.
const lastWords = time.Second

// hurry bounds the write of a response that is under way when closing ends, until spare returns.
func (t *traffic) hurry(w http.ResponseWriter) (spare func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(t.closing, func() {
		defer close(done)
		t.bound(w, lastWords)
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// bound says how long a client may take for the writes that follow, where the server knows
// deadlines. It returns until when.
func (t *traffic) bound(w http.ResponseWriter, most time.Duration) (until time.Time) {
	rc := http.NewResponseController(w)
	until = time.Now().Add(most)
	_ = rc.SetWriteDeadline(until)
	if t.closing.Err() != nil && most > lastWords { // asked after the deadline is set: hurry may have come before
		until = time.Now().Add(lastWords)
		_ = rc.SetWriteDeadline(until)
	}
	return until
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
