package roundtrip

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// Use is the use of a connection by one exchange.
type Use struct {
	transport *Transport
	over      <-chan struct{} // closed when nobody wants the exchange any more
	conn      *conn           // nil over HTTP/2
	reused    bool
	began     time.Time
	before    int64 // bytes written before
	reuse     time.Duration
	ended     sync.Once
}

// begin is told by http.Transport which connection it chose; it does so again
// when it has to choose another one. The response before on the same connection
// may still be judged, which takes as long as whoever reads it takes for what it says: who
// leaves meanwhile waits no longer, and takes the connection along.
func (u *Use) begin(info httptrace.GotConnInfo) {
	u.leave()
	u.conn, u.reused, u.began = below(info.Conn), info.Reused, time.Now()
	if u.conn == nil {
		return
	}
	select {
	case u.conn.turn <- struct{}{}:
	case <-u.over:
		_ = u.conn.Close()
		u.conn = nil
		return
	}
	u.before = u.conn.written.Load()
	u.conn.use()
}

// leave lets go of a connection that turned out to be lost, and of those of its
// age.
func (u *Use) leave() {
	if u.conn == nil {
		return
	}
	_ = u.conn.Close()
	<-u.conn.turn
	if u.reused {
		u.transport.distrust(u.began)
	}
	u.conn = nil
}

// fail ends a use that brought no response.
func (u *Use) fail(ctx context.Context, err error) error {
	unsent := u.conn != nil && u.conn.written.Load() == u.before
	if ctx.Err() != nil || timeout(err) {
		u.reused = false // which says nothing about other connections
	}
	u.leave()
	if unsent {
		return &unsentError{err}
	}
	return err
}

func timeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// heed notes how long the server says that it keeps the connection.
func (u *Use) heed(resp *http.Response) {
	if u.conn == nil {
		return
	}
	for _, v := range resp.Header["Keep-Alive"] {
		if announced, ok := http1.KeepAlive(v); ok {
			u.reuse = max(http1.ReuseFor(announced), time.Nanosecond)
		}
	}
}

// End ends the use once its response was read; trusted says whether that was the
// one to our request. The first call counts.
func (u *Use) End(trusted bool) {
	u.ended.Do(func() {
		switch {
		case u.conn == nil:
			return
		case trusted:
			u.conn.rest(u.reuse)
		default:
			_ = u.conn.Close()
		}
		<-u.conn.turn
	})
}

// unsentError is the failure of a request of which nothing left.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// Unsent reports whether no byte of the request left that failed with err.
func Unsent(err error) bool {
	_, ok := errors.AsType[*unsentError](err)
	return ok
}
