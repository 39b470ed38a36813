package legacy

import (
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/mcpbridge/bridge/internal/park"
)

// between is a connection between two requests: the first one was parked, the
// next one has yet to come. The poller, the janitor and whoever closes the lot
// use it; the poller's watch decides which of them gets the connection.
type between struct {
	entry
	poller *park.Poller
	server *http.Server
	conn   net.Conn

	mu    sync.Mutex
	watch park.Watch
}

// await keeps a connection whose response is over until the client's next
// request, of which early is what it has sent already. It takes the connection
// over.
func (h *HTTP) await(server *http.Server, conn net.Conn, early []byte) {
	if len(early) > 0 {
		giveBack(server, conn, early)
		return
	}
	b := &between{poller: h.lot.poller.Load(), server: server, conn: conn}
	b.item = b
	b.mu.Lock()
	defer b.mu.Unlock()
	watch, err := b.poller.Watch(conn, park.Data, b)
	if err != nil {
		_ = conn.Close()
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
	if ok, err := park.Waiting(b.conn); err != nil || !ok {
		_ = b.conn.Close()
		return
	}
	giveBack(b.server, b.conn, nil)
}

// due closes the connection: there was no request for long.
func (b *between) due() (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.poller.Forget(b.watch) {
		_ = b.conn.Close()
	}
	return false
}

// giveBack lets net/http serve a connection again, from its next request on. It
// does not wait for it.
func giveBack(server *http.Server, conn net.Conn, early []byte) {
	if len(early) > 0 {
		conn = &aheadConn{Conn: conn, early: early}
	}
	l := &onceListener{conn: conn}
	_ = server.Serve(l) // returns at once, since the listener has only one connection
	if l.conn != nil {  // the server was shut down
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
	early []byte
}

// Read implements net.Conn.
func (c *aheadConn) Read(b []byte) (int, error) {
	if len(c.early) == 0 || len(b) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.early)
	if c.early = c.early[n:]; len(c.early) == 0 {
		c.early = nil
	}
	return n, nil
}
