package upstream

import (
	"errors"
	"io"
	"math/bits"
	"sync"
)

const (
	minBuffer = 4 << 10
	// maxPooled bounds the buffers that are kept for reuse, in bytes.
	maxPooled = 256 << 10
)

// buffers holds messages that were sent or delivered, by their capacity:
// minBuffer at least in the first pool, twice that in the next. One pool for
// all sizes would soon give every small call a large buffer.
var buffers [7]sync.Pool

// getBuffer returns an empty buffer that has room for n bytes.
func getBuffer(n int) *[]byte {
	if n > maxPooled {
		b := make([]byte, 0, n)
		return &b
	}
	class := bits.Len(uint(max(n-1, 0) / minBuffer))
	if b, ok := buffers[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, minBuffer<<class)
	return &b
}

// putBuffer keeps a buffer that nobody uses any more.
func putBuffer(b *[]byte) {
	if n := cap(*b); n >= minBuffer && n <= maxPooled {
		*b = (*b)[:0]
		buffers[bits.Len(uint(n/minBuffer))-1].Put(b)
	}
}

// readAll appends what r has to b, which stays within limit bytes, and returns
// the buffer to go on with.
func readAll(b *[]byte, r io.Reader, limit int) (*[]byte, error) {
	for {
		if len(*b) == cap(*b) {
			larger := getBuffer(2 * cap(*b))
			*larger = append(*larger, *b...)
			putBuffer(b)
			b = larger
		}
		n, err := r.Read((*b)[len(*b):cap(*b)])
		*b = (*b)[:len(*b)+n]
		switch {
		case len(*b) > limit:
			return b, errTooLarge
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

var errTooLarge = errors.New("response too large")
