package edge

import (
	"net/http"
	"sync"
	"time"
)

// lastWords is how long a client of HTTP/2 may take for what is left of a response when
// its handler has returned.
const lastWords = time.Minute

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
