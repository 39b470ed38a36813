package passthrough

import "sync"

// piece is how much of a response is handed on at a time, in bytes. A response that lasts
// keeps its piece, so that it is smaller than what net/http/httputil takes, 32 KiB.
const piece = 8 << 10

// pieces implements httputil.BufferPool.
type pieces struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (p *pieces) Get() []byte {
	if b, ok := p.pool.Get().(*[piece]byte); ok {
		return b[:]
	}
	return make([]byte, piece)
}

// Put implements httputil.BufferPool.
func (p *pieces) Put(b []byte) { p.pool.Put((*[piece]byte)(b)) }
