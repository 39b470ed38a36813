package message

import (
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// Messages get their frame here, where they leave for a client.

// LateAnswer is what the log says of an answer that has no effect.
const LateAnswer = "an answer came to a question that is not open (any more); it has no effect"

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

// TextOf returns an interim message as text that nobody changes any more.
func TextOf(msg *downstream.Message) []byte {
	if msg.Text != nil {
		return msg.Text
	}
	a := arenas.Get().(*arena)
	defer arenas.Put(a)
	return msg.AppendTo(a.take(msg.Room()))
}

// Short is the answer in place of one for which there is no memory, for the reason that is given.
func Short(id jsonrpc.ID, why error) []byte {
	return jsonrpc.AppendError(nil, id, fault.Internal(why.Error(), fault.Limit("limits.memory")))
}

// Lapsed is the answer to a call that waited in the store, and nobody could go on with while its time came and passed.
func Lapsed(id jsonrpc.ID) []byte {
	return jsonrpc.AppendError(nil, id, fault.Internal("the time of this call is over, and the bridge could not go on with it: there was no memory for it, too many large calls came back together, "+
		"or its session could not be brought back; whether it was executed is not known", fault.Reason("timeout")))
}

// CopyText returns the text of a response, in memory of its own; nil for none.
func CopyText(msg *downstream.Message) []byte {
	if msg == nil {
		return nil
	}
	return msg.AppendTo(make([]byte, 0, msg.Room()))
}

// Framed gives use the text of a message, nil for none, which use must not keep.
func Framed(msg *downstream.Message, use func([]byte)) {
	switch {
	case msg == nil:
		use(nil)
	case msg.Text != nil:
		use(msg.Text)
	default:
		buf := Buffer()
		defer Release(&buf)
		*buf = msg.AppendTo(*buf)
		use(*buf)
	}
}

// maxPooled is the largest buffer that is kept for reuse.
const maxPooled = 64 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Buffer returns an empty buffer, for Release.
func Buffer() *[]byte { return buffers.Get().(*[]byte) }

// Release takes the buffer, if there is one, away from its user.
func Release(buf **[]byte) {
	if *buf == nil {
		return
	}
	if cap(**buf) <= maxPooled {
		**buf = (**buf)[:0]
		buffers.Put(*buf)
	}
	*buf = nil
}
