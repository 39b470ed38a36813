package bridge

import (
	"sync"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// buffers holds what a message is put together in. A buffer is only borrowed
// for one call of something that copies or writes it before it returns.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled keeps one large result from holding its memory for ever, in bytes.
const maxPooled = 256 << 10

func borrow() *[]byte { return buffers.Get().(*[]byte) }

func giveBack(b *[]byte) {
	if cap(*b) <= maxPooled {
		buffers.Put(b)
	}
}

// round is the upstream request of a round in flight. It is borrowed like a
// buffer, so that a suspended call holds neither it nor the headers it names.
type round struct {
	of     *call
	call   upstream.Call
	params []byte
	notify func(jsonrpc.Message) // bound once, not once a call
	idle   func()
	burst  burst
}

// burst is a run of notifications that came without a pause between them.
type burst struct {
	count  uint
	params []byte // of the notification that is put together
}

// timeless is how many notifications of a burst are taken to come at the same time,
// since a look at the clock costs as much as a small part of one.
const timeless = 64

// next counts a notification in and reports whether time may have passed since
// the one before.
func (b *burst) next() (later bool) {
	later = b.count%timeless == 0
	b.count++
	return later
}

var rounds sync.Pool

// borrowRound returns a round of the call k.
func borrowRound(k *call) *round {
	r, ok := rounds.Get().(*round)
	if !ok {
		r = new(round)
		r.notify = func(msg jsonrpc.Message) { r.of.notify(msg, &r.burst) }
		r.idle = func() {
			r.burst.count = 0
			r.of.out.Flush()
		}
	}
	r.of = k
	return r
}

func (r *round) giveBack() {
	r.of, r.call, r.burst.count = nil, upstream.Call{}, 0
	if cap(r.params) <= maxPooled {
		rounds.Put(r)
	}
}
