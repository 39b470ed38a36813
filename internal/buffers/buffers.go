// Package buffers keeps byte slices for reuse, by their capacity.
package buffers

import (
	"math/bits"
	"sync"
)

const (
	minBuffer = 4 << 10
	// maxPooled bounds the buffers that are kept for reuse, in bytes.
	maxPooled = 256 << 10
)

// pools hold buffers by their capacity:
// minBuffer at least in the first pool, twice that in the next. One pool for
// all sizes would soon give every small call a large buffer.
var pools [7]sync.Pool

// Get returns an empty buffer that has room for n bytes.
func Get(n int) *[]byte {
	if n > maxPooled {
		b := make([]byte, 0, n)
		return &b
	}
	class := bits.Len(uint(max(n-1, 0) / minBuffer))
	if b, ok := pools[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, minBuffer<<class)
	return &b
}

// Put keeps a buffer that nobody uses any more.
func Put(b *[]byte) {
	if n := cap(*b); n >= minBuffer && n <= maxPooled {
		*b = (*b)[:0]
		pools[bits.Len(uint(n/minBuffer))-1].Put(b)
	}
}
