package legacy

import (
	"net/http"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
)

// Messages get their frame here, where they leave for a client.

// arenas hold memory for the texts of interim messages, which event logs keep.
var arenas = sync.Pool{New: func() any { return new(arena) }}

// arena hands out memory for small texts: one allocation for a dozen of them. It is
// not safe for concurrent use.
type arena struct{ free []byte }

// arenaSize is how much is set aside at once, in bytes.
const arenaSize = 2 << 10

// take returns memory for n bytes, which nobody else uses.
func (a *arena) take(n int) []byte {
	if n > arenaSize/4 {
		return make([]byte, 0, n)
	}
	if n > len(a.free) {
		a.free = make([]byte, arenaSize)
	}
	taken := a.free[:0:n]
	a.free = a.free[n:]
	return taken
}

// textOf returns an interim message as text that nobody changes any more.
func textOf(msg *downstream.Message) []byte {
	if msg.Text != nil {
		return msg.Text
	}
	a := arenas.Get().(*arena)
	defer arenas.Put(a)
	return msg.AppendTo(a.take(msg.Room()))
}

// ownText returns a response, nil for none, as text of its own.
func ownText(msg *downstream.Message) []byte {
	if msg == nil {
		return nil
	}
	return msg.AppendTo(make([]byte, 0, msg.Room()))
}

// writeResponse writes a response as the whole body.
func (h *HTTP) writeResponse(w http.ResponseWriter, msg *downstream.Message) {
	framed(msg, func(text []byte) { h.writeResult(w, text) })
}

// framed gives use the text of a message, nil for none, which use must not keep.
func framed(msg *downstream.Message, use func([]byte)) {
	switch {
	case msg == nil:
		use(nil)
	case msg.Text != nil:
		use(msg.Text)
	default:
		buf := eventBuffers.Get().(*[]byte)
		defer releaseEvents(&buf)
		*buf = msg.AppendTo(*buf)
		use(*buf)
	}
}
