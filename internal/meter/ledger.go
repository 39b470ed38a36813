// Package meter charges connections to whom they come from: for being open, and for heads
// of requests that have begun and not ended. Nobody but an address can be charged for these,
// since who sends a request is known when its head is there. Over HTTP/2 each request is charged
// to the connection, too, until its response has left: that is for the client alone to say.
//
//	Ledger ◀── Tab (one connection) ◀── Conn, of net/http     connections of legacy/h1 have a Tab only
//
// The package knows no HTTP: whoever serves a connection says where heads end. It is charged
// by the bytes that came, which below TLS is all there is to see.
package meter

import (
	"net"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Bounds of what is lent to an address that holds too much already: so many connections, and
// for each so much. They may bring the answer that ends what it holds.
const (
	lentConnections = 64
	lentBytes       = 192 << 10
)

// Ledger has the connections of all addresses. Its methods are safe for concurrent use. Those
// of the nil Ledger charge nothing.
type Ledger struct {
	memory  *budget.Budget
	tenant  func(from net.Addr) string
	refused func(from net.Addr, why error)
	hello   func(from net.Addr) // nil: nobody wants to know

	mu     sync.Mutex     // guards what follows
	open   map[string]int // connections by tenant
	turned turned
}

// New returns a ledger; nil without a budget. tenant names who connections of an address are
// charged to, "" for those who stand for many: they are let in, and lent what heads need while
// there is any. Who comes through them is judged by their requests.
// refused is told of every refusal, and why: budget.ErrShare or budget.ErrFull.
func New(memory *budget.Budget, tenant func(net.Addr) string, refused func(net.Addr, error)) *Ledger {
	if memory == nil {
		return nil
	}
	return &Ledger{memory: memory, tenant: tenant, refused: refused, open: make(map[string]int), turned: newTurned(memory.Limit())}
}

// OnHello has f told of connections that net/http is to serve in plain and that begin with a handshake of TLS. It is for before
// there are any. The package sees the first bytes of all of them, whichever server accepted them.
func (l *Ledger) OnHello(f func(from net.Addr)) {
	if l != nil {
		l.hello = f
	}
}

// Open begins the tab of a connection, which is to be closed.
func (l *Ledger) Open(from net.Addr) *Tab {
	if l == nil {
		return nil
	}
	t := &Tab{ledger: l, from: from, tenant: l.tenant(from)}
	t.hold = budget.On(l.memory.Guest(t.tenant))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[t.tenant]++
	t.lent = t.tenant == "" || l.open[t.tenant] <= lentConnections
	return t
}

// Tab is what one connection is charged for. Its owner guards it. The methods of the nil Tab
// do nothing.
type Tab struct {
	ledger *Ledger
	from   net.Addr
	tenant string
	lent   bool // it is one of the first of its address
	bytes  int
	hold   budget.Hold
	why    error // it was refused
	closed bool
}

// Hold charges for so many bytes in the place of what was charged until now. It reports
// false, and changes nothing, when that is too much.
func (t *Tab) Hold(bytes int) bool {
	if t == nil || t.closed || bytes == t.bytes {
		return true
	}
	if err := t.set(bytes); err != nil {
		t.why = err
		t.ledger.refused(t.from, err)
		return false
	}
	t.bytes = bytes
	return true
}

func (t *Tab) set(bytes int) error {
	switch more := bytes - t.bytes; {
	case more <= 0:
		return t.hold.Set(bytes)
	case t.tenant == "" && bytes <= lentBytes:
		t.hold.Charge(more)
		return nil
	case t.lent && (t.tenant == "" || bytes <= lentBytes):
		return t.hold.Overdraw(more)
	}
	return t.hold.Set(bytes)
}

// Close gives everything back. It is idempotent.
func (t *Tab) Close() {
	if t == nil || t.closed {
		return
	}
	t.closed = true
	t.hold.Release()
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[t.tenant]--; l.open[t.tenant] == 0 {
		delete(l.open, t.tenant)
	}
	l.turned.remove(t)
}
