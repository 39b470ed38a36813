package h1

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds on how long a body may take: bodyGrace, and a second more for each
// bodyRate bytes that have come. Slower clients are not distinguishable from ones
// that only want to hold a connection.
const (
	bodyGrace = 30 * time.Second
	bodyRate  = 64 << 10
)

// bodyLimit is when a body that began to be waited for at start, and of which so
// much has come since, is given up if nothing more comes.
func bodyLimit(start time.Time, got int64) time.Time {
	return start.Add(bodyGrace + time.Duration(got/bodyRate)*time.Second)
}

// maxSkip is how much of a body that the handler left is read to keep the
// connection, in bytes.
const maxSkip = 256 << 10

// body is a request's body.
type body struct {
	cn *conn

	mu    sync.Mutex
	left  int64
	got   int64 // from the connection
	start time.Time
	over  bool
	err   error
}

var errBodyCut = errors.New("request body: the client was too slow, or the server is shutting down")

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
		return 0, http.ErrBodyReadAfterClose
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	}
	n, err := b.read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		err = io.EOF
		b.cn.in.bodyRead()
	}
	b.err = err
	return n, err
}

// read takes what is buffered first, and lets larger pieces pass the buffer by.
func (b *body) read(p []byte) (n int, err error) {
	in := &b.cn.in
	if in.buffered() == 0 && len(p) < readBuffer {
		if err := b.wait(func(limit time.Time) error { return in.fill(limit) }); err != nil {
			return 0, err
		}
		b.got += int64(in.buffered())
	}
	if in.buffered() > 0 {
		n = copy(p, in.bytes())
		in.skip(n)
		return n, nil
	}
	err = b.wait(func(limit time.Time) error {
		n, err = in.readPast(p, limit)
		return err
	})
	b.got += int64(n)
	return n, err
}

// wait runs what reads from the connection.
func (b *body) wait(read func(limit time.Time) error) error {
	if b.start.IsZero() {
		b.start = time.Now()
	}
	err := b.cn.receive(func() error { return read(bodyLimit(b.start, b.got)) })
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err == errShutdown || err != nil && timeout(err):
		return errors.Join(errBodyCut, err)
	}
	return err
}

// Close implements io.Closer. What is left is passed over later.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return nil
}

// excess reports whether so much is left, or is missing, that the connection
// cannot be kept.
func (b *body) excess() bool {
	if !b.mu.TryLock() {
		return false // it is being read; end will know
	}
	defer b.mu.Unlock()
	return b.err != nil && b.err != io.EOF || b.left-int64(b.cn.in.buffered()) > maxSkip
}

// end ends the body's use. When the connection is to be kept it reads what is
// left. It reports whether nothing is.
func (b *body) end(keep bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.left == 0 {
		return true
	}
	in := &b.cn.in
	for {
		n := min(b.left, int64(in.buffered()))
		in.skip(int(n))
		if b.left -= n; b.left == 0 {
			return true
		}
		b.got += n
		if !keep || b.err != nil || b.left > maxSkip {
			return false
		}
		b.err = b.wait(in.fill)
	}
}
