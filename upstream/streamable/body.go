package streamable

import (
	"errors"
	"io"

	"github.com/mcpbridge/bridge/internal/buffers"
	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream"
)

// meter tells how much of a stream is held, while it is read: what the decoder's buffer has
// grown to. Events that were handed on are no longer held, nor is what a decoder has passed
// over: comments, and events without data, which may come for as long as the stream is open.
type meter struct {
	io.Reader
	held   upstream.Held // may be nil
	events *sse.Decoder  // reads from here
	told   int
}

// Read implements io.Reader. The error is that of held.
func (m *meter) Read(p []byte) (int, error) {
	if size := m.events.Held(); size != m.told && m.held != nil {
		m.told = size
		if short := m.held.Set(size); short != nil {
			return 0, short
		}
	}
	return m.Reader.Read(p)
}

// maxAhead bounds the memory given to a body on the strength of its announced
// length alone, in bytes.
const maxAhead = 1 << 20

// readBody reads a whole body into a buffer of its own: in one go when its
// length is announced.
func readBody(r exchange, limit int, held upstream.Held) (*[]byte, error) {
	n := r.length()
	if n > int64(limit) {
		return buffers.Get(0), errTooLarge
	}
	if err := upstream.Charge(held, int(n)); err != nil {
		return buffers.Get(0), err
	}
	if n < 0 {
		return readAll(buffers.Get(0), r, limit, held)
	}
	if n > maxAhead {
		return readAll(buffers.Get(0), r, int(n), nil)
	}
	body := buffers.Get(int(n))
	*body = (*body)[:n]
	_, err := io.ReadFull(r, *body)
	return body, err
}

// readAll appends what r has to b, which stays within limit bytes, and returns
// the buffer to go on with. held is told how large that is, not how much of it is used.
func readAll(b *[]byte, r io.Reader, limit int, held upstream.Held) (*[]byte, error) {
	for {
		if len(*b) == cap(*b) {
			size := min(larger(cap(*b)), max(limit+1, cap(*b)+1)) // a byte more, to see that there is none
			if short := upstream.Charge(held, size); short != nil {
				return b, short
			}
			next := buffers.Get(size)
			*next = append(*next, *b...)
			buffers.Put(b)
			b = next
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

// larger returns the size of the next buffer: twice that of a small one. Of a large one half
// would stay unused, for as long as the response is kept.
func larger(size int) int {
	if size < maxAhead {
		return 2 * size
	}
	return size + size/4
}

var errTooLarge = errors.New("response too large")
