package meter

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// What connections are charged for, in bytes, as measured with 200 of each kind.
const (
	LeanCost = 12 << 10 // of legacy/h1
	httpCost = 20 << 10 // of net/http
	tlsCost  = 32 << 10
	h2Cost   = 48 << 10 // with a frame that has begun
)

// What an unfinished head is charged for. net/http makes fourteen times its size of a head of
// many small fields; over HTTP/2, where a field may be one byte, up to 64 times, but no more
// than a bound on the whole lets it. Small ones are within what a connection costs anyway.
const (
	smallHead   = 1 << 10
	headFactor  = 14
	fieldFactor = 64
	fieldsMost  = 112 << 10
	headMost    = 68 << 10 // what net/http reads of a head: 64 KiB and its buffer
)

// headWindow is how long bytes over HTTP/2 count for an unfinished head: other frames than
// those of heads and bodies are not told apart. No head takes as long as that.
const headWindow = time.Minute

// turnTimeout is how long who is refused may take to say what it wants.
const turnTimeout = 2 * time.Second

// Conn is a connection that net/http serves. What it reads counts for a head until one is
// said to have ended:
//
//	head ──Begun──▶ busy ──Idle──▶ head      HTTP/1: nothing counts while it is busy
//	head ──Begun──▶ head                     HTTP/2: another head may come; what bodies take does not count
type Conn struct {
	net.Conn
	ledger *Ledger
	secure bool        // TLS is around it
	heard  atomic.Bool // something was read

	mu      sync.Mutex // guards what follows
	opened  bool
	closed  bool
	tab     *Tab
	cost    int
	refused bool
	told    bool
	busy    bool
	h2      bool
	head    int // bytes of a head, perhaps: of this window
	before  int // of the one before
	since   time.Time
	streams streams
}

// Conn returns a connection that is charged, on this tab, or one of its own. It takes the tab
// over.
func (l *Ledger) Conn(nc net.Conn, tab *Tab) net.Conn {
	if l == nil {
		return nc
	}
	return &Conn{Conn: nc, ledger: l, tab: tab, cost: httpCost}
}

// Below returns a listener whose connections are charged. secure: TLS is around it.
func (l *Ledger) Below(inner net.Listener, secure bool) net.Listener {
	if l == nil {
		return inner
	}
	return &listener{inner, l, secure}
}

type listener struct {
	net.Listener
	ledger *Ledger
	secure bool
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: nc, ledger: l.ledger, secure: l.secure, cost: httpCost}
	if l.secure {
		c.cost = tlsCost
	}
	return c, nil
}

// open charges for the connection when it is first read from. Asking for the address may
// read, too, so that nobody else can do it.
func (c *Conn) open() {
	c.mu.Lock()
	begun := c.opened
	c.opened = true
	c.mu.Unlock()
	if begun {
		return
	}
	from := c.Conn.RemoteAddr()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.tab == nil {
		c.tab = c.ledger.Open(from)
	}
	if c.refused = !c.tab.Hold(c.cost); c.refused {
		_ = c.Conn.SetReadDeadline(time.Now().Add(turnTimeout))
		c.tab.Leaves(c.Conn.Close)
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.open()
	n, err := c.Conn.Read(p)
	c.listen(p[:n])
	if n == 0 || c.count(n) {
		return n, err
	}
	c.answer()
	return 0, errRefused
}

// handshake is how a message begins with which a client begins TLS: the kind of the record, and the first byte of its version.
var handshake = []byte{0x16, 0x03}

// listen looks at the first bytes of a connection.
func (c *Conn) listen(got []byte) {
	if len(got) == 0 || c.heard.Load() {
		return
	}
	c.heard.Store(true) // one read at a time
	if !c.secure && c.ledger.hello != nil && bytes.HasPrefix(got, handshake) {
		c.ledger.hello(c.Conn.RemoteAddr())
	}
}

// answer tells who was refused, once: net/http may read again.
func (c *Conn) answer() {
	c.mu.Lock()
	tells := !c.secure && !c.h2 && !c.told
	c.told = true
	c.mu.Unlock()
	if !tells {
		return
	}
	if _, err := io.WriteString(c.Conn, c.tab.Refusal()); err == nil {
		c.linger()
	}
}

// How long, and how many bytes, who was refused may go on sending. net/http closes the connection at once, and what is unread
// then has it reset: the answer would be lost.
const (
	lingering   = 500 * time.Millisecond
	lingersOver = 64 << 20
)

// linger closes the sending half and waits for the client to close.
func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingering)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingersOver)
}

// errRefused is one that net/http says nothing about.
var errRefused = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("its address holds too much of limits.memory")}

// count counts what was read, and reports whether there is room for it.
func (c *Conn) count(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return false
	}
	if c.busy {
		return true
	}
	if c.h2 {
		c.turnLocked()
	}
	c.head += n
	c.refused = !c.chargeLocked()
	return !c.refused
}

// turnLocked forgets what is too old to be of a head.
func (c *Conn) turnLocked() {
	now := time.Now()
	switch passed := now.Sub(c.since); {
	case passed < headWindow:
		return
	case passed < 2*headWindow:
		c.before = c.head
	default:
		c.before = 0
	}
	c.head, c.since = 0, now
}

func (c *Conn) chargeLocked() bool {
	return c.tab.Hold(c.cost + headCost(c.head+c.before) + c.streams.cost + c.streams.unheard*StreamCost)
}

// headCost returns what so many bytes of an unfinished head are charged for.
func headCost(bytes int) int {
	if bytes <= smallHead {
		return 0
	}
	bytes = min(bytes, headMost)
	return max(headFactor*bytes, min(fieldFactor*bytes, fieldsMost))
}

// forgetLocked says that no head is unfinished.
func (c *Conn) forgetLocked() {
	c.head, c.before = 0, 0
	c.chargeLocked()
}

// Greeted says that the first message of a TLS handshake is there.
func (c *Conn) Greeted() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked()
}

// Begun says that a head is whole, since its request is served. The nil Conn knows nothing.
func (c *Conn) Begun(protoMajor int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if protoMajor == 2 {
		c.h2, c.cost = true, h2Cost
	} else {
		c.busy, c.streams = true, streams{}
	}
	c.forgetLocked()
}

// Body says that so much of what was read was of a body.
func (c *Conn) Body(n int) {
	if c == nil || n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.h2 {
		return
	}
	c.head = max(c.head-n, 0)
	c.chargeLocked()
}

// Note is for http.Server.ConnState: a connection is idle when the next head may come, and
// one that was hijacked has none. HTTP/2 is idle once it has begun, too, when of its first
// head much may have come: what counts until then goes on to count. Later it is idle when all
// responses have left.
func (c *Conn) Note(state http.ConnState) {
	if c == nil || state != http.StateIdle && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h2 || state == http.StateIdle && !c.busy {
		c.settleLocked()
		return
	}
	c.busy = state == http.StateHijacked
	c.forgetLocked()
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.tab.Close()
	c.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the sending half where that is possible. net/http does so before it
// closes a connection with something unread.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
