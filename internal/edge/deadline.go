package edge

import (
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/legacy/web"
)

// lastWords is how long a client of HTTP/2 may take for what is left of a response when
// its handler has returned.
const lastWords = time.Minute

// serveStream serves a request over HTTP/2. Its connection is charged for it until the response has
// left, for which the client may have opened no window.
func serveStream(next http.Handler, w http.ResponseWriter, r *http.Request) {
	conn, cost := meter.From(r), meter.StreamCost+web.HeadCost(r.Header)
	over := newH2(w)
	if !conn.Stream(cost) {
		defer conn.Refused()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable) // without a body: that could have to wait
		over.leave()
		return
	}
	ended := false
	defer func() {
		if !ended {
			conn.Gone(cost)
		}
	}()
	next.ServeHTTP(over, r)
	if ended = conn.Ended(cost); ended {
		over.end()
	} else {
		over.leave()
	}
}

// h2 is a response over HTTP/2 whose write deadline means what it does on a connection:
// it bounds writes. net/http resets a stream when its deadline passes, even if nothing
// was to be written, which would end every event stream that is quiet.
type h2 struct {
	http.ResponseWriter
	rc *http.ResponseController

	mu      sync.Mutex
	until   time.Time
	writing bool
}

func newH2(w http.ResponseWriter) *h2 {
	return &h2{ResponseWriter: w, rc: http.NewResponseController(w)}
}

// Unwrap is for http.ResponseController.
func (w *h2) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *h2) Write(b []byte) (n int, err error) {
	w.bounded(func() { n, err = w.ResponseWriter.Write(b) })
	return n, err
}

// FlushError is for http.ResponseController.
func (w *h2) FlushError() (err error) {
	w.bounded(func() { err = w.rc.Flush() })
	return err
}

// Flush implements http.Flusher.
func (w *h2) Flush() { _ = w.FlushError() }

// SetWriteDeadline is for http.ResponseController. It may be called while another
// goroutine writes.
func (w *h2) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = t
	if w.writing {
		return w.rc.SetWriteDeadline(t)
	}
	return nil
}

// bounded has the deadline hold while something is written.
func (w *h2) bounded(write func()) {
	w.mark(true)
	defer w.mark(false)
	write()
}

func (w *h2) mark(writing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = writing
	switch {
	case w.until.IsZero():
	case writing:
		_ = w.rc.SetWriteDeadline(w.until)
	default:
		_ = w.rc.SetWriteDeadline(time.Time{})
	}
}

// end bounds what net/http has left to write after the handler.
func (w *h2) end() { _ = w.rc.SetWriteDeadline(time.Now().Add(lastWords)) }

// leave is end that returns when all but the end of the response has been sent, or cannot be.
func (w *h2) leave() {
	w.end()
	_ = w.rc.Flush()
}
