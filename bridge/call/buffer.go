package call

import "sync"

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
