package legacy

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/park"
)

// between is a connection between two requests: the first one was parked, the
// next one has yet to come. The poller, the janitor and whoever closes the lot
// use it; the poller's watch decides which of them gets the socket.
type between struct {
	entry
	http   *HTTP
	server *http.Server
	sock   park.Socket

	mu    sync.Mutex
	watch park.Watch
}

// await keeps a connection whose response is over until the client's next
// request, of which early is what it has sent already. It takes the socket over.
func (h *HTTP) await(server *http.Server, sock park.Socket, early string) {
	b := &between{http: h, server: server, sock: sock}
	if len(early) > 0 {
		b.giveBack(early)
		return
	}
	b.item = b
	b.mu.Lock()
	defer b.mu.Unlock()
	watch, err := h.lot.poller.Load().Watch(sock, park.Data, b)
	if err != nil { // the poller is closed, or full
		sock.Close()
		return
	}
	b.watch = watch
	h.lot.idles.add(&b.entry)
}

// Ready implements park.Owner: there is a request, or the client hung up.
func (b *between) Ready() {
	b.mu.Lock() // until await is done
	b.entry.remove()
	b.mu.Unlock()
	b.http.lot.poller.Load().Drop(b.sock)
	b.goOn()
}

// due closes the connection: there was no request for long, or the lot is closed.
func (b *between) due() (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.http.lot.poller.Load().Forget(b.watch) {
		b.goOn()
	}
	return false
}

// goOn serves the request that waits, if there is one.
func (b *between) goOn() {
	if ok, err := b.sock.Waiting(); ok && err == nil {
		b.giveBack("")
		return
	}
	b.sock.Close()
}

// patience is how long to wait before a connection is tried to be given back
// again, after too many files were open.
const patience = 50 * time.Millisecond

// giveBack lets net/http serve the connection again, from its next request on.
// It does not wait for that.
func (b *between) giveBack(early string) {
	conn, err := b.sock.Conn()
	switch {
	case err == nil:
		if len(early) > 0 {
			conn = &aheadConn{Conn: conn, early: early}
		}
		serveOne(b.server, conn)
	case park.Exhausted(err) && !b.http.closing.Load():
		time.AfterFunc(patience, func() { b.giveBack(early) })
	default:
		b.sock.Close()
	}
}

// serveOne has the server serve one connection, or closes it when the server
// was shut down.
func serveOne(server *http.Server, conn net.Conn) {
	l := &onceListener{conn: conn}
	_ = server.Serve(l) // returns at once: there is no second connection to accept
	if l.conn != nil {
		_ = conn.Close()
	}
}

// onceListener accepts one connection.
type onceListener struct{ conn net.Conn }

// Accept implements net.Listener.
func (l *onceListener) Accept() (net.Conn, error) {
	conn := l.conn
	if conn == nil {
		return nil, io.EOF
	}
	l.conn = nil
	return conn, nil
}

// Close implements net.Listener.
func (l *onceListener) Close() error { return nil }

// Addr implements net.Listener.
func (l *onceListener) Addr() net.Addr { return &net.TCPAddr{} }

// aheadConn is a connection of which some bytes were read ahead.
type aheadConn struct {
	net.Conn
	early string
}

// Read implements net.Conn.
func (c *aheadConn) Read(b []byte) (int, error) {
	if len(c.early) == 0 || len(b) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.early)
	c.early = c.early[n:]
	return n, nil
}
