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
	*call
	up     upstream.Call
	params []byte
	hear   func(jsonrpc.Message) // notify, bound once, not once a call
	idle   func()
	told   []byte // params of the progress that is put together
}

var rounds sync.Pool

// borrowRound returns a round of the call k.
func borrowRound(k *call) *round {
	r, ok := rounds.Get().(*round)
	if !ok {
		r = new(round)
		r.hear = r.notify
		r.idle = func() { r.out.Flush() }
	}
	r.call = k
	return r
}

func (r *round) giveBack() {
	r.call, r.up = nil, upstream.Call{}
	if cap(r.params) <= maxPooled {
		rounds.Put(r)
	}
}
