package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/socket"
)

// dial opens a connection that is guarded. It is how the client itself would, else.
func (d *demotions) dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	if config != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return guard(socket.New(conn), d), nil
}

// guarded is a connection to a server whose replies are looked at before the client gets
// them: a length that cannot be, or a reply that nobody asked for, would have the client end
// the process, in a goroutine of its own where nobody can recover. Here it is the end of
// the connection, and an outage of the store like any other.
type guarded struct {
	net.Conn
	in    framing // of who reads
	out   framing // of who writes
	fault error   // what in found; the reader's

	demotions *demotions // of all the store's connections
	since     int64      // how many there had been at the beginning; it is over with the next

	commands   atomic.Int64 // written
	replies    int64        // that have begun; the reader's
	uncounted  atomic.Bool  // commands may have replies of another number: whoever subscribes is told by pushes
	transacted atomic.Bool  // what opens a connection is over

	waiting atomic.Int64 // transactions
	mu      sync.Mutex
	execs   []int64 // which commands end transactions whose replies are yet to come

	six     bool // the server says that it is a Redis 6
	version int  // which value of the first reply says so; 0: none
}

func guard(conn net.Conn, d *demotions) *guarded {
	g := &guarded{Conn: conn, demotions: d, since: d.count.Load()}
	g.in = framing{began: g.replyBegan, whole: g.replied, said: g.pushed, patched: func() bool { return g.six && g.transacted.Load() }, value: g.greeted}
	g.out = framing{began: func(byte) error { return nil }, whole: func(byte, int) error { g.commands.Add(1); return nil }, said: func([]byte) error { return nil }, patched: func() bool { return false }, value: g.commanded}
	return g
}

// Read implements net.Conn.
func (g *guarded) Read(p []byte) (int, error) {
	if g.fault != nil {
		return 0, g.fault
	}
	if g.demoted() {
		return 0, errDemoted
	}
	n, err := g.Conn.Read(p)
	if n, g.fault = g.in.scan(p[:n]); g.fault != nil {
		return n, g.fault
	}
	return n, err
}

func (g *guarded) demoted() bool { return g.demotions.count.Load() != g.since }

// Write implements net.Conn. A command counts before it leaves.
func (g *guarded) Write(p []byte) (int, error) {
	if g.demoted() {
		return 0, errDemoted
	}
	if !g.uncounted.Load() {
		if _, err := g.out.scan(p); err != nil { // a command larger than replies may be
			g.uncounted.Store(true)
		}
	}
	return g.Conn.Write(p)
}

// replyBegan refuses a reply to no command.
func (g *guarded) replyBegan(kind byte) error {
	if kind == '>' || kind == '|' {
		return nil
	}
	if g.replies++; g.replies > g.commands.Load() && !g.uncounted.Load() {
		return garbled("a reply to no command")
	}
	return nil
}

// replied refuses a transaction of the client's without the two values that it asked for: PTTL and GET
// of a record.
func (g *guarded) replied(kind byte, values int) error {
	if kind == '-' {
		g.demotions.heard(g.in.latest())
	}
	if kind == '>' || g.waiting.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.execs[0] != g.replies {
		return nil
	}
	g.execs = g.execs[1:]
	g.waiting.Add(-1)
	if (kind == '*' || kind == '~') && values < 2 {
		return garbled("a transaction without its values")
	}
	return nil
}

// pushed refuses to be told of subscriptions where there are none.
func (g *guarded) pushed(what []byte) error {
	switch string(what) {
	case "subscribe", "psubscribe", "ssubscribe":
		if !g.uncounted.Load() {
			return garbled("word of a subscription that nobody has")
		}
	}
	return nil
}

// commanded looks at the words of a command.
func (g *guarded) commanded(_ byte, index int, word []byte) {
	if index > 0 {
		return
	}
	is := func(name string) bool { return len(word) == len(name) && strings.EqualFold(string(word), name) }
	switch {
	case is("SUBSCRIBE"), is("PSUBSCRIBE"), is("SSUBSCRIBE"):
		g.uncounted.Store(true)
	case is("MULTI"):
		g.transacted.Store(true)
	case is("EXEC"):
		g.mu.Lock()
		defer g.mu.Unlock()
		g.execs = append(g.execs, g.commands.Load()+1)
		g.waiting.Add(1)
	}
}

// greeted reads from the reply to the first command which version the server is, as the client
// does.
func (g *guarded) greeted(within byte, index int, word []byte) {
	switch {
	case g.replies != 1 || within == '>' || within == '|':
	case index%2 == 0 && string(word) == "version":
		g.six, g.version = false, index+1
	case index == g.version && index > 0:
		major, _, _ := strings.Cut(string(word), ".")
		version, _ := strconv.ParseInt(major, 10, 32)
		g.six = version == 6
	}
}
