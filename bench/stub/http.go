package stub

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
)

// Path is where both servers answer MCP requests, PathChanged triggers a
// list-changed notification to every stream that may have one, PathStats
// answers with Stats.
const (
	Path        = "/mcp"
	PathChanged = "/control/changed"
	PathStats   = "/control/stats"
)

const maxBody = 1 << 20

// Stats counts what a server saw. Violations must stay zero: each is a request
// that the protocol forbids, described by FirstViolation.
type Stats struct {
	Calls          int64  `json:"calls"`
	Questions      int64  `json:"questions"`
	Sessions       int64  `json:"sessions"` // open now; always 0 on Modern
	Streams        int64  `json:"streams"`  // GET or listen streams open now
	Held           int64  `json:"held"`     // calls waiting for an answer now; always 0 on Modern
	Violations     int64  `json:"violations"`
	FirstViolation string `json:"firstViolation,omitempty"`
}

// counters is the part of Stats that both servers keep alike.
type counters struct {
	calls, questions, violations atomic.Int64
	first                        atomic.Pointer[string]
}

func (c *counters) violate(what string) {
	c.violations.Add(1)
	c.first.CompareAndSwap(nil, &what)
}

func (c *counters) fill(s *Stats) {
	s.Calls, s.Questions, s.Violations = c.calls.Load(), c.questions.Load(), c.violations.Load()
	if p := c.first.Load(); p != nil {
		s.FirstViolation = *p
	}
}

// buffer holds one request's text and one answer's.
type buffer struct{ in, out []byte }

var buffers = sync.Pool{New: func() any { return &buffer{in: make([]byte, 0, 4096), out: make([]byte, 0, 4096)} }}

func getBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.in, b.out = b.in[:0], b.out[:0]
	return b
}

func (b *buffer) free() { buffers.Put(b) }

var errTooLarge = errors.New("stub: request body too large")

// read fills in with the request body.
func (b *buffer) read(r *http.Request) error {
	for {
		if len(b.in) == cap(b.in) {
			b.in = append(b.in, 0)[:len(b.in)]
		}
		n, err := r.Body.Read(b.in[len(b.in):cap(b.in)])
		b.in = b.in[:len(b.in)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(b.in) > maxBody:
			return errTooLarge
		}
	}
}

// Shared header values; net/http only reads them.
var (
	typeJSON    = []string{"application/json"}
	typeSSE     = []string{"text/event-stream"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
)

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a peer that has gone shows up as the client's error
}

// stream begins an SSE response.
func stream(w http.ResponseWriter) http.Flusher {
	h := w.Header()
	h["Content-Type"] = typeSSE
	h["Cache-Control"] = noCache
	h["X-Accel-Buffering"] = noBuffering
	w.WriteHeader(http.StatusOK)
	return w.(http.Flusher)
}

// Events are framed in place: beginEvent, the message, endEvent.
func beginEvent(dst []byte) []byte { return append(dst, "event: message\ndata: "...) }
func endEvent(dst []byte) []byte   { return append(dst, "\n\n"...) }

func writeStats(w http.ResponseWriter, s Stats) {
	body, err := json.Marshal(s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// appendError appends a JSON-RPC error response; an empty id is left out.
func appendError(dst, id []byte, code int, message string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if len(id) > 0 {
		dst = append(append(append(dst, `"id":`...), id...), ',')
	}
	dst = append(strconv.AppendInt(append(dst, `"error":{"code":`...), int64(code), 10), `,"message":`...)
	dst = strconv.AppendQuoteToASCII(dst, message)
	return append(dst, "}}"...)
}

// appendProgress appends one progress notification for a raw token.
func appendProgress(dst, token []byte, step int) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...), token...)
	dst = strconv.AppendInt(append(dst, `,"progress":`...), int64(step), 10)
	dst = strconv.AppendInt(append(dst, `,"total":`...), StepCount, 10)
	return append(dst, `,"message":"working"}}`...)
}

func appendResponse(dst, id []byte) []byte {
	return append(append(append(dst, `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
}
