package quiet

import (
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/legacy/h1"
)

// idleConn is a connection between two requests: the first one was parked, the
// next one has yet to come. The poller, the janitor and whoever ends the server
// use it; the poller's watch decides which of them gets the socket.
type idleConn struct {
	idle   agenda.Entry
	conns  *Conns
	server *http.Server
	sock   park.Socket

	mu    sync.Mutex
	watch park.Watch
}

// await keeps a connection whose response is over until the client's next
// request, of which early is what it has sent already. It takes the socket over.
func (c *Conns) await(server *http.Server, sock park.Socket, early string) {
	b := &idleConn{conns: c, server: server, sock: sock}
	if len(early) > 0 {
		b.giveBack(early)
		return
	}
	b.idle.Item = b
	if c.opt.Gate.IsShut() {
		b.release()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	watch, err := c.poller.Load().Watch(sock, park.Data, b)
	if err != nil { // the poller is closed, or full
		sock.Close()
		return
	}
	b.watch = watch
	c.idle.Add(&b.idle)
}

// Ready implements park.Owner: there is a request, or the client hung up.
func (b *idleConn) Ready() {
	b.mu.Lock() // until await is done
	b.idle.Remove()
	b.mu.Unlock()
	b.conns.poller.Load().Drop(b.sock)
	b.goOn()
}

// Due closes the connection: there was no request for long.
func (b *idleConn) Due() (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns.poller.Load().Forget(b.watch) {
		b.goOn()
	}
	return false
}

// end gives the connection back at the end of the endpoint.
func (b *idleConn) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns.poller.Load().Forget(b.watch) {
		b.release()
	}
}

// release gives the connection back though there is no request: a balancer takes it for free, and what it
// sends just now would be lost. The server knows when to end it. That of net/http alone would wait for the
// request before it stops.
func (b *idleConn) release() {
	if h1.Of(b.server) == nil {
		b.goOn()
		return
	}
	b.giveBack("")
}

// goOn serves the request that waits, if there is one.
func (b *idleConn) goOn() {
	if ok, err := b.sock.Waiting(); ok && err == nil {
		b.giveBack("")
		return
	}
	b.sock.Close()
}

// patience is how long to wait before a connection is tried to be given back
// again, after too many files were open.
const patience = 50 * time.Millisecond

// giveBack lets the server serve the connection again, from its next request on.
// It does not wait for that.
func (b *idleConn) giveBack(early string) {
	conn, err := b.sock.Conn()
	switch {
	case err == nil:
		if lean := h1.Of(b.server); lean != nil {
			lean.GoOn(conn, []byte(early))
			return
		}
		h1.ServeOne(b.server, conn, []byte(early))
	case park.Exhausted(err) && !b.conns.opt.Gate.IsShut():
		time.AfterFunc(patience, func() { b.giveBack(early) })
	default:
		b.sock.Close()
	}
}
