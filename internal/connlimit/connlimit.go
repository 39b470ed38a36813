// Package connlimit keeps the connections few that hold a file descriptor and serve
// nobody, on listeners that are not for clients: those of replicas, of operators and of
// people who are asked. The process needs its descriptors for its clients.
package connlimit

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Waiting is how many connections may wait for a request: a sixteenth of the table of file
// descriptors, at least 8 and at most 1024.
func Waiting() int { return min(max(Descriptors()/16, 8), 1024) }

// Listen returns l for a server whose connections without a request under way are at most
// this many: those that are yet to send their first, or to prove who they are by TLS, and
// those that are kept for the next. The one that has waited longest makes room, one without
// any request first. The server's ConnState is taken.
func Listen(server *http.Server, l net.Listener, most int) net.Listener {
	g := &guard{Listener: l, most: most, at: map[net.Conn]*list.Element{}}
	server.ConnState = g.changed
	return g
}

// guard knows the connections that wait, oldest first.
type guard struct {
	net.Listener
	most int

	mu    sync.Mutex
	fresh list.List // of net.Conn: no request has come
	idle  list.List // of net.Conn: the next one is waited for
	at    map[net.Conn]*list.Element
}

// Accept implements net.Listener.
func (g *guard) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.wait(conn, &g.fresh)
	return conn, nil
}

// wait notes that a connection waits, and closes another one where there are too many.
func (g *guard) wait(conn net.Conn, where *list.List) {
	g.mu.Lock()
	g.leaveLocked(conn)
	g.at[conn] = where.PushBack(conn)
	var over net.Conn
	if len(g.at) > g.most {
		oldest := g.fresh.Front()
		if oldest == nil || oldest.Value == conn && g.idle.Len() > 0 {
			oldest = g.idle.Front()
		}
		over = oldest.Value.(net.Conn)
		g.leaveLocked(over)
	}
	g.mu.Unlock()
	if over != nil {
		_ = over.Close()
	}
}

func (g *guard) leaveLocked(conn net.Conn) {
	if e := g.at[conn]; e != nil {
		delete(g.at, conn)
		g.fresh.Remove(e) // each does nothing with an element of the other
		g.idle.Remove(e)
	}
}

// changed is the server's ConnState.
func (g *guard) changed(conn net.Conn, state http.ConnState) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	switch state {
	case http.StateNew: // it waits since Accept
	case http.StateIdle:
		g.wait(conn, &g.idle)
	default:
		g.mu.Lock()
		g.leaveLocked(conn)
		g.mu.Unlock()
	}
}
