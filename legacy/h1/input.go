package h1

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// readBuffer is the size of a connection's read buffer, in bytes. A head must
// fit in it; larger bodies are read past it into their destination.
const readBuffer = 4 << 10

var readBuffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// longAgo ends reads that wait.
var longAgo = time.Unix(1, 0)

// input is the receiving half of a connection. Deadlines are set late: what a
// read is held to is limit, and the connection's own deadline is only not later
// than that. When it comes too early it is moved, and the read goes on.
//
// While a handler runs, a watcher may read into the free part of the buffer, to
// notice the client's departure. It goes on after the handler, and whoever wants
// to read then waits for what it gets. One goroutine at most reads at any time:
//
//	free ──claim──▶ reading, by who serves the connection ──▶ free
//	  │                ▲ claim waits, and takes got or err
//	  └─ensureLocked─▶ watching ──something came, the end, or it is late──▶ free
//
// Who serves the connection claims, and alone moves r and w; the watcher alone writes
// behind w. From any state cutOff leads to cut, in which every read fails at once, until it is taken back (resume), and
// stop to stopped, after which the connection is somebody else's.
type input struct {
	nc   net.Conn
	page *[readBuffer]byte // nil when released
	r, w int               // what is buffered stands between; only the reader's

	mu       sync.Mutex // guards what follows
	cond     sync.Cond
	limit    time.Time // of the read that waits; zero: none
	armed    time.Time // the connection's deadline
	custom   time.Time // what the handler wants instead of a body's bound
	cut      bool      // nothing may be waited for any more
	stopped  bool      // nothing is read here any more
	watching bool
	claimed  bool        // somebody waits for what the watcher gets
	quiet    bool        // the request's body needs no reading from the connection
	asker    *reqContext // wants to know of the client's departure
	got      int         // bytes of the watcher behind w
	err      error       // how the connection ended, as the watcher found
}

func (in *input) init(nc net.Conn) {
	in.nc, in.page = nc, readBuffers.Get().(*[readBuffer]byte)
	in.cond.L = &in.mu
}

// release gives the buffer back. Nobody may read any more.
func (in *input) release() {
	if in.page != nil {
		readBuffers.Put(in.page)
		in.page = nil
	}
}

func (in *input) size() int     { return readBuffer }
func (in *input) buffered() int { return in.w - in.r }
func (in *input) bytes() []byte { return in.page[in.r:in.w] }

// skip passes over buffered bytes.
func (in *input) skip(n int) {
	if in.r += n; in.r == in.w {
		in.compact()
	}
}

// put fills the empty buffer; false when it is too small.
func (in *input) put(early []byte) bool {
	if len(early) > readBuffer {
		return false
	}
	in.w = copy(in.page[:], early)
	return true
}

// compact makes room, unless the watcher is using what is free.
func (in *input) compact() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.makeRoomLocked()
}

func (in *input) makeRoomLocked() {
	if in.watching || in.r == 0 || in.got > 0 {
		return
	}
	if in.r < in.w {
		copy(in.page[:], in.page[in.r:in.w])
	}
	in.r, in.w = 0, in.w-in.r
}

// fill reads more behind what is buffered, of which there must be less than fits.
func (in *input) fill(limit time.Time) error {
	if took, err := in.claim(limit); took || err != nil {
		return err
	}
	n, err := in.read(in.page[in.w:])
	in.w += n
	return err
}

// readPast reads into p, with nothing buffered.
func (in *input) readPast(p []byte, limit time.Time) (int, error) {
	took, err := in.claim(limit)
	if err != nil {
		return 0, err
	}
	if took {
		n := copy(p, in.bytes())
		in.skip(n)
		return n, nil
	}
	return in.read(p)
}

// discard reads and forgets.
func (in *input) discard(limit time.Time) error {
	in.skip(in.buffered())
	return in.fill(limit)
}

// claim waits for the watcher, if there is one, and takes what it got. Without
// it, and with nothing taken, the caller may read.
func (in *input) claim(limit time.Time) (took bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.claimed = true
	if err := in.armLocked(limit); err != nil {
		return false, err
	}
	for in.watching && in.got == 0 {
		in.cond.Wait()
	}
	if in.got > 0 {
		in.w += in.got
		in.got = 0
		return true, nil
	}
	if in.err != nil {
		return false, in.err
	}
	in.makeRoomLocked()
	return false, nil
}

// read reads until something came, what armLocked has set has passed, or the connection
// ended.
func (in *input) read(p []byte) (int, error) {
	for {
		n, err := in.nc.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != nil && (!timeout(err) || in.late()) {
			return 0, err
		}
	}
}

func timeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// armLocked sets what the next read is held to.
func (in *input) armLocked(limit time.Time) error {
	if in.cut {
		return errShutdown
	}
	if !in.custom.IsZero() {
		limit = in.custom
	}
	in.limit = limit
	if !limit.IsZero() && (in.armed.IsZero() || in.armed.After(limit)) {
		in.deadlineLocked(limit)
	}
	return nil
}

func (in *input) deadlineLocked(t time.Time) {
	in.armed = t
	_ = in.nc.SetReadDeadline(t)
}

// late reports whether the limit has passed; otherwise the deadline was one of
// before, and is moved.
func (in *input) late() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.isLateLocked()
}

func (in *input) isLateLocked() bool {
	if in.cut || !in.limit.IsZero() && !time.Now().Before(in.limit) {
		return true
	}
	in.deadlineLocked(in.limit)
	return false
}

// cutOff ends a read that waits, and all that follow, where that is so under the lock.
func (in *input) cutOff(where func() bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if where() && !in.stopped {
		in.cut = true
		in.deadlineLocked(longAgo)
	}
}

// resume takes a cut back, for what was read before it.
func (in *input) resume() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cut = false
	if !in.stopped {
		in.deadlineLocked(time.Time{})
	}
}

// hold is the handler's wish for the reads of its request's body.
func (in *input) hold(t time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.custom = t
	if in.cut || in.stopped || in.watching || t.IsZero() {
		return nil
	}
	in.limit, in.armed = t, t
	return in.nc.SetReadDeadline(t)
}

var errShutdown = errors.New("server is shutting down")
