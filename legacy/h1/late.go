package h1

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/meter"
)

// lateBody bounds how long the body of a request may take that net/http serves,
// as body does for ours. net/http itself would wait for ever, also at the end of
// a handler that did not read the body.
type lateBody struct {
	io.ReadCloser
	from  *http.Request // net/http's
	to    *http.Request // the handler's
	conn  *meter.Conn   // nil: it is not charged
	rc    *http.ResponseController
	start time.Time

	mu    sync.Mutex
	limit time.Time
	got   int64
	done  bool // no deadline must be set any more
}

// lateHandler is the handler of net/http's server.
type lateHandler struct{ server *Server }

// ServeHTTP implements http.Handler.
func (h lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, from := h.server, meter.From(r)
	from.Begun(r.ProtoMajor)
	if tooMany(w, r) {
		return
	}
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// It may have had a Content-Length, too, which net/http drops without a word. Who
		// is in front and believed that has other requests behind this one than we: none
		// of them is served (RFC 9112 6.3).
		w.Header().Set("Connection", "close")
	}
	if r.Body == nil || r.Body == http.NoBody {
		s.handler.ServeHTTP(w, r)
		return
	}
	own := *r // net/http looks at the body of r afterwards: whether the connection can be kept
	b := &lateBody{ReadCloser: r.Body, from: r, to: &own, conn: from, rc: http.NewResponseController(w), start: time.Now()}
	own.Body = b
	b.extend(0)
	s.watchBody(b)
	defer s.forgetBody(b)
	s.handler.ServeHTTP(w, &own)
}

func (s *Server) watchBody(b *lateBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[b] = struct{}{}
	if s.closing.Load() {
		b.cut()
	}
}

func (s *Server) forgetBody(b *lateBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bodies, b)
}

// Read implements io.Reader.
func (b *lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.conn.Body(n)
	if err == nil {
		b.extend(n)
	} else {
		b.to.Trailer = b.from.Trailer
		b.end(err == io.EOF)
	}
	return n, err
}

// extend allows more time for n bytes that came, in steps of a second.
func (b *lateBody) extend(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got += int64(n)
	if limit := bodyLimit(b.start, b.got); !b.done && limit.After(b.limit) {
		b.limit = limit
		_ = b.rc.SetReadDeadline(limit)
	}
}

// end lifts the bound when the body was read. After that net/http itself reads,
// to notice the client's departure, and would take a deadline for one.
func (b *lateBody) end(whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if whole {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	b.done = true
}

// cut lets the body end at once, unless it has come whole.
func (b *lateBody) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.done {
		b.done = true
		_ = b.rc.SetReadDeadline(longAgo)
	}
}
