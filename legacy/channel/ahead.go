package channel

import (
	"io"
	"sync"
)

// maxAhead is how much of an input is read before anybody takes it, in bytes: more than a pipe or a
// socket holds of what its writer has left there.
const maxAhead = 1 << 20

// aheadStep is how much is read at once, and what is kept of memory that is not needed, in bytes.
const aheadStep = 64 << 10

// ahead reads an input before it is asked to, so that the input's end shows though whoever takes
// it waits for a client that does not read.
type ahead struct {
	moved func() // told whenever something is taken

	mu    sync.Mutex
	news  sync.Cond
	text  []byte // read, and not taken yet
	err   error  // after text
	ended chan struct{}
}

func newAhead(in io.Reader, moved func()) *ahead {
	a := &ahead{moved: moved, ended: make(chan struct{})}
	a.news.L = &a.mu
	go a.readAll(in)
	return a
}

func (a *ahead) readAll(in io.Reader) {
	buf := make([]byte, aheadStep)
	for {
		n, err := in.Read(buf)
		a.mu.Lock()
		for len(a.text) > 0 && len(a.text)+n > maxAhead {
			a.news.Wait()
		}
		a.text, a.err = append(a.text, buf[:n]...), err
		a.news.Broadcast()
		a.mu.Unlock()
		if err != nil {
			close(a.ended)
			return
		}
	}
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.text) == 0 && a.err == nil {
		a.news.Wait()
	}
	if n = copy(p, a.text); n == len(a.text) {
		a.text, err = a.text[:0], a.err
		if cap(a.text) > aheadStep {
			a.text = nil
		}
	} else {
		a.text = a.text[n:]
	}
	a.news.Broadcast()
	a.moved()
	return n, err
}
