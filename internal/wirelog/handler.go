package wirelog

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Handler records the exchanges that next serves on hop. Entries are written
// before the bytes are passed on, so that an effect never precedes its cause.
func (r *Recorder) Handler(hop Hop, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		x := &exchange{r: r, hop: hop, number: r.begin(), method: req.Method, header: req.Header.Clone(), gone: req.Context().Done()}
		body := &bodyTee{x: x, body: req.Body, left: req.ContentLength}
		if req.ContentLength == 0 {
			body.finish()
		}
		req = req.Clone(req.Context())
		req.Body = body
		rw := &responseTee{ResponseWriter: w, x: x}
		defer func() {
			body.finish()
			rw.finish()
		}()
		next.ServeHTTP(rw, req)
	})
}

type exchange struct {
	r      *Recorder
	hop    Hop
	number int
	method string
	header http.Header
	gone   <-chan struct{} // closed when the peer is: it sees nothing any more
}

func (x *exchange) seen() bool {
	select {
	case <-x.gone:
		return false
	default:
		return true
	}
}

func (x *exchange) add(kind Kind, status int, data []byte) {
	e := Entry{Hop: x.hop, Kind: kind, Exchange: x.number, Method: x.method, Status: status, Data: data}
	e.Stream = kind == Event || kind == Priming
	if kind == Request {
		e.Header = x.header
	}
	x.r.add(e)
}

// bodyTee records the request when its last byte is read.
type bodyTee struct {
	x    *exchange
	body io.ReadCloser
	left int64 // bytes expected; negative when unknown
	seen bytes.Buffer
	done bool
}

func (b *bodyTee) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.done {
		b.seen.Write(p[:n])
		if err != nil || (b.left >= 0 && int64(b.seen.Len()) >= b.left) {
			b.finish()
		}
	}
	return n, err
}

func (b *bodyTee) Close() error { return b.body.Close() }

func (b *bodyTee) finish() {
	if !b.done {
		b.done = true
		b.x.add(Request, 0, b.seen.Bytes())
	}
}

// responseTee records a JSON body once it is complete and an event stream event
// by event.
type responseTee struct {
	http.ResponseWriter
	x      *exchange
	status int
	stream bool
	buf    []byte // the body, or the event that is not yet complete
	final  bool   // the response to the request was written; what follows is no loss
}

// Unwrap lets http.ResponseController reach the connection.
func (w *responseTee) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher for handlers that ask for it directly.
func (w *responseTee) Flush() {
	w.head(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *responseTee) WriteHeader(status int) {
	if status >= 200 {
		w.head(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseTee) Write(p []byte) (int, error) {
	w.head(http.StatusOK)
	w.buf = append(w.buf, p...)
	if !w.x.seen() {
		w.buf = nil
	} else if w.stream {
		w.events()
	} else if json.Valid(w.buf) {
		w.body()
	}
	return w.ResponseWriter.Write(p)
}

func (w *responseTee) head(status int) {
	if w.status != 0 || !w.x.seen() {
		return
	}
	w.status = status
	w.stream = strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	w.x.r.answered(w.x.number, status, w.stream)
}

func (w *responseTee) body() {
	if text := bytes.TrimSpace(w.buf); len(text) > 0 {
		w.x.add(Body, w.status, text)
		w.final = true
	}
	w.buf = nil
}

func (w *responseTee) events() {
	for {
		end := bytes.Index(w.buf, []byte("\n\n"))
		if end < 0 {
			return
		}
		if kind, data, ok := parseEvent(w.buf[:end]); ok {
			w.x.add(kind, w.status, data)
			w.final = w.final || isResponse(data)
		}
		w.buf = w.buf[end+2:]
	}
}

// parseEvent reads one event as our own peers write it: LF line ends, at most
// one space after the colon. Comments alone are no event.
func parseEvent(block []byte) (kind Kind, data []byte, ok bool) {
	for line := range bytes.SplitSeq(block, []byte("\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "data":
			if ok {
				data = append(data, '\n')
			}
			data, ok = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
		case "id":
			kind = Priming
		}
	}
	if len(data) > 0 {
		return Event, data, true
	}
	return kind, nil, ok && kind == Priming
}

func isResponse(data []byte) bool {
	var msg struct{ Result, Error json.RawMessage }
	return json.Unmarshal(data, &msg) == nil && (msg.Result != nil || msg.Error != nil)
}

func (w *responseTee) finish() {
	if !w.x.seen() {
		if !w.final {
			w.x.add(Abandoned, w.status, nil)
		}
		return
	}
	w.head(http.StatusOK)
	if !w.stream {
		w.body()
	}
}
