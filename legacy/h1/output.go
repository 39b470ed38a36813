package h1

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

const (
	// headRoom is the space for what ends a head: framing, "Connection: close",
	// a guessed media type, and the first chunk's size.
	headRoom = 192
	// copied is up to how many bytes copying is cheaper than telling the kernel
	// of two pieces.
	copied = 2 << 10
)

// send writes what waits, and then extra; last ends the response with that.
func (w *response) send(extra []byte, last bool) error {
	if w.out == nil && !last {
		return nil // the head has left, and nothing waits
	}
	out := w.buffer()
	data := len(*out) - w.body + len(extra)
	begin := w.body
	var space [headRoom]byte
	front := space[:0]
	if !w.sent {
		w.frame(data, last)
		front = w.appendEnd(front, (*out)[w.body:], extra)
	}
	if w.bodiless {
		*out, extra, data = (*out)[:w.body], nil, 0
	}
	if w.chunked && data > 0 {
		front = http1.AppendChunkHead(front, data)
	}
	begin -= len(front)
	copy((*out)[begin:], front)
	if !w.sent {
		begin -= w.headLen
		copy((*out)[begin:], (*out)[:w.headLen])
	}
	w.sent = true
	return w.sendPieces(begin, extra, data, last)
}

// sendPieces writes out from begin on, extra, and what ends both.
func (w *response) sendPieces(begin int, extra []byte, data int, last bool) error {
	var tail []byte
	if w.chunked {
		tail = w.tail(data > 0, last)
	}
	out := w.out
	if len(extra) > 0 && len(extra) <= copied {
		*out, extra = append(*out, extra...), nil
	}
	if len(extra) == 0 {
		*out, tail = append(*out, tail...), nil
	}
	if begin < len(*out) || len(extra)+len(tail) > 0 {
		w.write((*out)[begin:], extra, tail)
	}
	w.release()
	return w.err
}

var (
	lineEnd   = []byte(http1.LineEnd)
	lastChunk = []byte(http1.LastChunk)
	bothEnds  = []byte(http1.LineEnd + http1.LastChunk)
)

// tail is what follows the data of a chunk, and of all of them.
func (w *response) tail(chunk, last bool) []byte {
	switch {
	case last && len(w.trailers) == 0 && !hasTrailers(w.header):
		if chunk {
			return bothEnds
		}
		return lastChunk
	case !last && chunk:
		return lineEnd
	case !last:
		return nil
	}
	var b []byte
	if chunk {
		b = append(b, "\r\n"...)
	}
	return w.appendTrailers(append(b, "0\r\n"...))
}

// write writes the pieces in one go. A failure ends the request's context.
func (w *response) write(a, b, c []byte) {
	cn := w.cn
	if !w.limited.Load() {
		cn.allowWrite(len(a) + len(b) + len(c))
	}
	_, err := cn.sock.WritePieces([3][]byte{a, b, c})
	if err != nil && w.err == nil {
		w.err = err
		w.x.ctx.clientLeft()
	}
}

// frame decides how the client knows the end of the body, and whether the
// connection ends with it. The body has size bytes until now.
func (w *response) frame(size int, last bool) {
	switch {
	case w.length >= 0 || !bodyAllowed(w.status):
	case last && (!w.head || size > 0):
		w.length = int64(size)
	case !w.head:
		w.chunked = true
	}
	if w.cn.server.closing.Load() || w.x.body.excess() {
		w.close = true
	}
}

// appendEnd appends what a head ends with.
func (w *response) appendEnd(b, data, extra []byte) []byte {
	if w.sniff && bodyAllowed(w.status) {
		if len(data) == 0 {
			data = extra
		}
		if len(data) > 0 {
			b = append(append(append(b, "Content-Type: "...), http.DetectContentType(data)...), "\r\n"...)
		}
	}
	switch {
	case w.chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case w.length >= 0:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), w.length, 10), "\r\n"...)
	}
	if w.close {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

func appendStatus(b []byte, status int) []byte {
	if status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}

type field struct {
	name   string
	values []string
}

// appendHeader appends the handler's fields in the order of their names, but for
// those that frame decides.
func (w *response) appendHeader(b []byte) []byte {
	var space [12]field
	fields := space[:0]
	for name, values := range w.header {
		fields = append(fields, field{name, values})
	}
	if len(fields) > 1 {
		slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	}
	if declared := w.header["Trailer"]; declared != nil {
		w.declare(declared)
	}
	for _, f := range fields {
		if w.plain(f) && http1.IsToken(f.name) {
			b = appendField(b, f.name, f.values)
		}
	}
	return b
}

// plain reports whether a field is sent as it is, and notes what the others say.
func (w *response) plain(f field) bool {
	switch f.name {
	case "Content-Length":
		if w.status >= 200 && w.status != http.StatusNoContent && w.status != http.StatusNotModified {
			w.setLength(f.values)
		}
		return false
	case "Transfer-Encoding":
		return false
	case "Connection":
		if hasClose(f.values) {
			w.close = true
			return false
		}
	case "Date":
		w.dated = true
	case "Content-Type":
		w.sniff = false
		return w.status != http.StatusNotModified
	case "Content-Encoding":
		w.sniff = w.sniff && (len(f.values) == 0 || f.values[0] == "")
	default:
		return !w.isTrailer(f.name)
	}
	return true
}

func (w *response) setLength(values []string) {
	if len(values) == 0 {
		return
	}
	if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n >= 0 {
		w.length = n
	} else {
		w.cn.server.logf("http: invalid Content-Length of %q", values[0])
	}
}

// date is the text of a Date field, good for one second.
type date struct {
	second int64
	text   []byte
}

var lastDate atomic.Pointer[date]

func appendDate(b []byte) []byte {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), []byte("Date: " + now.UTC().Format(http.TimeFormat) + "\r\n")}
		lastDate.Store(d)
	}
	return append(b, d.text...)
}

// allowWrite bounds a write of n bytes whose handler does not: a client that
// reads nothing must not hold it for ever. The deadline is moved only when it is
// too near.
func (cn *conn) allowWrite(n int) {
	limit := bodyLimit(time.Now(), int64(n))
	if cn.writeUntil.Before(limit) {
		cn.writeUntil = limit.Add(bodyGrace)
		_ = cn.nc.SetWriteDeadline(cn.writeUntil)
	}
}
