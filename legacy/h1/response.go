package h1

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// response is the http.ResponseWriter of one exchange. What a handler writes
// waits in a buffer behind the head until there is much of it, the handler
// flushes, or returns: a small answer leaves in one piece, with its length.
type response struct {
	cn     *conn
	x      *exchange
	header http.Header

	out     *[]byte // head, then room for what is decided at its sending, then what waits of the body; nil: nothing waits
	body    int     // where in out the body begins
	headLen int     // of the head in out

	status  int // 0: the head is not written yet
	length  int64
	written int64 // of the body, by the handler

	head     bool // of a request HEAD
	sent     bool // the head has left
	chunked  bool
	close    bool // the connection ends with the response
	sniff    bool // the media type is to be guessed
	dated    bool
	bodiless bool
	hijacked bool
	over     bool // the handler has returned
	limited  atomic.Bool
	trailers []string
	err      error // of writing
}

// Buffers of responses, which hold a small response with its head.
const (
	writeBuffer = 4 << 10
	smallBody   = 2 << 10 // waits even behind a large head, as in net/http
	maxPooled   = 16 << 10
)

// hijackBuffer is the size of the buffers of a hijacked connection, in bytes: who
// hijacks one of ours takes it away altogether, since upgrades are net/http's.
const hijackBuffer = 128

var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeBuffer); return &b }}

var errHandlerDone = errors.New("http: response used after its handler returned")

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = headers.Get().(http.Header)
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch {
	case w.hijacked || w.over:
		w.cn.server.logf("http: response.WriteHeader on a response that is over")
	case w.status != 0:
		w.cn.server.logf("http: superfluous response.WriteHeader call")
	case status < 100 || status > 999:
		panic("invalid WriteHeader code " + strconv.Itoa(status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		w.inform(status)
	default:
		w.begin(status)
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	if err := w.prepare(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.bodiless && w.sent {
		return len(p), nil
	}
	out := w.buffer()
	if len(*out)+len(p) <= writeBuffer || len(*out)-w.body+len(p) <= smallBody {
		*out = append(*out, p...)
		return len(p), nil
	}
	if err := w.send(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// usable reports why a handler has nothing to do with the response any more.
func (w *response) usable() error {
	switch {
	case w.hijacked:
		return http.ErrHijacked
	case w.over:
		return errHandlerDone
	}
	return nil
}

// prepare counts what the handler is about to write.
func (w *response) prepare(n int) error {
	if err := w.usable(); err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	w.written += int64(n)
	if w.length >= 0 && w.written > w.length {
		return http.ErrContentLength
	}
	return nil
}

// buffer returns out, with its body begun.
func (w *response) buffer() *[]byte {
	if w.out == nil {
		w.out = writeBuffers.Get().(*[]byte)
		*w.out = (*w.out)[:http1.ChunkRoom]
		w.body = http1.ChunkRoom
	}
	return w.out
}

// headers are reused: a response has few fields, but a map for eight takes 400 bytes.
var headers = sync.Pool{New: func() any { return make(http.Header, 4) }}

// reusedFields is the largest number of fields whose map is reused.
const reusedFields = 8

// releaseHeader takes the header away from a handler that has returned.
func (w *response) releaseHeader() {
	if w.header != nil && len(w.header) <= reusedFields {
		clear(w.header)
		headers.Put(w.header)
	}
	w.header = nil
}

func (w *response) release() {
	if w.out != nil && cap(*w.out) <= maxPooled {
		writeBuffers.Put(w.out)
	}
	w.out = nil
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends what waits, as http.ResponseController wants it.
func (w *response) FlushError() error {
	if err := w.prepare(0); err != nil {
		return err
	}
	return w.send(nil, false)
}

// finish ends the response when the handler has returned. It reports whether the
// connection can be used further.
func (w *response) finish() (again bool) {
	if w.status == 0 && w.err == nil {
		w.begin(http.StatusOK)
	}
	if w.err == nil {
		_ = w.send(nil, true)
	}
	w.over = true
	w.release()
	w.releaseHeader()
	if w.limited.Load() {
		w.cn.writeUntil = time.Time{}
	}
	short := w.length >= 0 && w.written != w.length && !w.bodiless
	return w.err == nil && !w.close && !short
}

// SetReadDeadline bounds the reading of the request's body instead of its own
// bound, which a zero time restores.
func (w *response) SetReadDeadline(t time.Time) error {
	if err := w.usable(); err != nil {
		return err
	}
	return w.cn.in.hold(t)
}

// SetWriteDeadline implements what http.ResponseController wants. It may be
// called while another goroutine writes.
func (w *response) SetWriteDeadline(t time.Time) error {
	if err := w.usable(); err != nil {
		return err
	}
	w.limited.Store(true)
	return w.cn.nc.SetWriteDeadline(t)
}

// EnableFullDuplex implements what http.ResponseController wants: a body can
// always be read beside the writing.
func (w *response) EnableFullDuplex() error { return nil }

// Hijack implements http.Hijacker.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.usable(); err != nil {
		return nil, nil, err
	}
	if w.status != 0 {
		if err := w.send(nil, false); err != nil {
			return nil, nil, err
		}
	}
	w.hijacked = true
	w.release()
	cn := w.cn
	cn.takeAway()
	early := append([]byte(nil), cn.in.bytes()...)
	in := bufio.NewReaderSize(NewAhead(cn.nc, early), max(len(early), hijackBuffer))
	_, _ = in.Peek(len(early)) // so that it is buffered
	return cn.nc, bufio.NewReadWriter(in, bufio.NewWriterSize(cn.nc, hijackBuffer)), nil
}

// begin writes the head into the buffer: from now on the handler's changes of
// the header make no difference.
func (w *response) begin(status int) {
	w.status = status
	w.bodiless = w.head || !bodyAllowed(status)
	w.out = writeBuffers.Get().(*[]byte)
	b := appendStatus((*w.out)[:0], status)
	w.sniff = true
	b = w.appendHeader(b)
	if !w.dated {
		b = appendDate(b)
	}
	w.headLen = len(b)
	w.body = len(b) + headRoom
	*w.out = slices.Grow(b, headRoom)[:w.body]
}

// inform sends an interim response.
func (w *response) inform(status int) {
	b := appendStatus(nil, status)
	for name, values := range w.header {
		if http1.IsToken(name) && name != "Content-Length" && name != "Transfer-Encoding" {
			b = appendField(b, name, values)
		}
	}
	w.write(append(b, "\r\n"...), nil, nil)
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func hasClose(values []string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), "close") {
				return true
			}
		}
	}
	return false
}

// exchange is one request and its response, in one piece of memory.
type exchange struct {
	ctx  reqContext
	body body
	resp response
}
