package passthrough

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/mcp"
)

// shuttingDown is what a request is told that comes too late.
const shuttingDown = "the bridge is shutting down"

// traffic counts the requests under way and ends them in order.
type traffic struct {
	active   atomic.Int64
	draining context.Context // ends with Drain
	drain    context.CancelFunc
	closing  context.Context // ends with Close
	cut      context.CancelFunc
	idle     sync.WaitGroup
	mu       sync.Mutex // orders idle.Add before Close waits
}

func (t *traffic) open() {
	t.draining, t.drain = context.WithCancel(context.Background())
	t.closing, t.cut = context.WithCancel(context.Background())
}

// enter counts a request in. Its context ends with the client's interest or when
// the traffic is to end; leave is nil when that is over already.
func (t *traffic) enter(r *http.Request) (ctx context.Context, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining.Err() != nil {
		return nil, nil
	}
	t.idle.Add(1)
	t.active.Add(1)
	ends := t.closing
	if endless(r) {
		ends = t.draining
	}
	ctx, cancel := context.WithCancel(r.Context())
	release := context.AfterFunc(ends, cancel)
	return ctx, func() {
		release()
		cancel()
		t.active.Add(-1)
		t.idle.Done()
	}
}

// endless reports a request whose response never ends by itself: nobody waits
// for that when the traffic stops.
func endless(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get(mcp.HeaderMethod) == mcp.MethodListen
}

// Active returns the number of requests under way.
func (t *traffic) Active() int { return int(t.active.Load()) }

// Drain takes no further requests and ends those that would never end.
func (t *traffic) Drain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
}

// Shutdown drains and returns when every request has ended. When ctx ends first
// it cuts them off and returns its error.
func (t *traffic) Shutdown(ctx context.Context) error {
	t.Drain()
	done := make(chan struct{})
	go func() { defer close(done); t.idle.Wait() }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.cut()
	<-done
	return err
}

// Close cuts every request off.
func (t *traffic) Close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Shutdown(ended) // its error is that of the context
}
