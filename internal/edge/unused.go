package edge

import (
	"net"
	"net/http"
	"sync"
)

// unused keeps the connections on which nothing has come yet. Clients open some
// in advance, and a shutdown of net/http would wait five seconds for each in
// case a request is on its way. Requests are refused by then. Those of h1 are
// closed by its own shutdown.
type unused struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	over  bool
}

// note is an http.Server's ConnState.
func (u *unused) note(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, conn)
	case u.over:
		_ = conn.Close()
	default:
		if u.conns == nil {
			u.conns = make(map[net.Conn]struct{})
		}
		u.conns[conn] = struct{}{}
	}
}

// close closes them, and those that are yet to come.
func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	for conn := range u.conns {
		_ = conn.Close()
	}
}
