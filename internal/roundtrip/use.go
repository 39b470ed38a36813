package roundtrip

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// Use is the use of a connection by one exchange.
type Use struct {
	transport *Transport
	trace     httptrace.ClientTrace // tells begin
	request   context.Context       // ends when nobody wants the exchange any more
	url       *url.URL              // of the request
	another   func()                // told of the next connection that is dialed for it; guarded by the transport's lock
	conn      *conn
	opening   *opening // on top of conn; nil behind a proxy
	reused    bool
	again     bool // it only asks
	began     time.Time
	before    int64 // bytes written before
	sent      bool  // something left, on this connection or one before
	heard     atomic.Bool
	reuse     time.Duration
	ended     sync.Once
}

// begin is told by http.Transport which connection it chose; it does so again
// when it has to choose another one. The response before on the same connection
// may still be judged, which takes as long as whoever reads it takes for what it says: who
// leaves meanwhile waits no longer, and takes the connection along.
func (u *Use) begin(info httptrace.GotConnInfo) {
	u.leave()
	u.reused, u.began = info.Reused, time.Now()
	u.heard.Store(false)
	u.opening, _ = info.Conn.(*opening)
	c := below(info.Conn)
	c.settle()
	select {
	case c.turn <- struct{}{}:
	case <-u.request.Done():
		_ = c.Close()
		return
	}
	u.conn, u.before = c, c.written.Load()
	c.use()
}

// hear is told that a response begins.
func (u *Use) hear() { u.heard.Store(true) }

// leave lets go of a connection that turned out to be lost, and of those of its
// age.
func (u *Use) leave() {
	if u.conn == nil {
		return
	}
	u.sent = u.sent || u.conn.written.Load() > u.before
	_ = u.conn.Close()
	<-u.conn.turn
	if u.reused {
		u.transport.distrust(u.began)
	}
	u.conn = nil
}

// fail ends a use that brought no response.
func (u *Use) fail(err error) error {
	gone := u.request.Err()
	switch {
	case u.again && errors.Is(gone, context.DeadlineExceeded): // what only asks was not answered in its time
	case gone != nil, timeout(err):
		u.reused = false // which says nothing about other connections
	}
	u.leave()
	switch {
	case !u.sent:
		err = refused(err)
	case gone == nil && u.heard.Load():
		err = u.Judged(err)
	}
	return &failure{err, u.sent}
}

func timeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout() && !errors.Is(err, syscall.ETIMEDOUT) // the kernel's: nobody is there
}

// heed notes how long the server says that it keeps the connection.
func (u *Use) heed(resp *http.Response) {
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
		case u.conn == nil: // who left while another response was judged
			return
		case trusted:
			u.conn.rest(u.reuse)
		default:
			_ = u.conn.Close()
		}
		<-u.conn.turn
	})
}

// failure is that of a request without a response.
type failure struct {
	error
	sent bool
}

func (e *failure) Unwrap() error { return e.error }

// Sent reports whether something of the request left that failed with err: it may have been executed.
func Sent(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.sent
}
