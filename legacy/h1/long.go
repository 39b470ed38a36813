package h1

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/internal/meter"
)

// Bounds of a request's head, of which net/http makes ten times the size when its fields are
// many and small.
const (
	// MaxHead is how long a head may be, in bytes, give or take net/http's buffer.
	MaxHead = 64 << 10
	// maxFields is how many fields a head may have: more than fit in the buffer.
	maxFields = 1024
)

// readOn reads a head that does not fit in the buffer to its end, for net/http, which
// would keep what it makes of the fields while they come, however slowly.
func (cn *conn) readOn(limit time.Time) verdict {
	b := append(make([]byte, 0, 4*readBuffer), cn.in.bytes()...)
	cn.in.skip(cn.in.buffered())
	for seen := 0; !ends(b[seen:]) && len(b) < MaxHead+readBuffer; {
		seen = max(len(b)-len("\n\r"), 0)
		if len(b) == cap(b) {
			b = append(make([]byte, 0, 2*cap(b)), b...)
		}
		if !cn.tab.Hold(meter.LeanCost + cap(b)) {
			return greedy
		}
		n, err := cn.in.readPast(b[len(b):cap(b)], limit)
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			cn.early = b
			return foreign // net/http knows what to say to half a head
		case err != nil:
			return gone
		}
	}
	cn.early = b
	return foreign
}

// ends reports whether there is an empty line, as net/http takes one for it.
func ends(b []byte) bool {
	return bytes.Contains(b, []byte("\n\r\n")) || bytes.Contains(b, []byte("\n\n"))
}

// tooMany refuses a head of more fields than anybody needs.
func tooMany(w http.ResponseWriter, r *http.Request) bool {
	n := 0
	for _, values := range r.Header {
		n += len(values)
	}
	if n <= maxFields {
		return false
	}
	w.Header().Set("Connection", "close")
	if r.ProtoMajor == 2 {
		w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge) // alone: a body could wait for the client
		return true
	}
	http.Error(w, "a request may have 1024 header fields", http.StatusRequestHeaderFieldsTooLarge)
	return true
}
