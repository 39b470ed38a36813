package h1

import (
	"context"
	"io"
	"net"
	"net/http"

	"github.com/mcpbridge/bridge/internal/meter"
)

// Ahead is a connection of which some bytes were read ahead.
type Ahead struct {
	net.Conn
	early []byte
}

// NewAhead returns a connection that first reads early, which it keeps.
func NewAhead(nc net.Conn, early []byte) *Ahead { return &Ahead{nc, early} }

// Read implements net.Conn.
func (a *Ahead) Read(p []byte) (int, error) {
	if len(a.early) == 0 || len(p) == 0 {
		return a.Conn.Read(p)
	}
	n := copy(p, a.early)
	if a.early = a.early[n:]; len(a.early) == 0 {
		a.early = nil
	}
	return n, nil
}

// CloseWrite closes the sending half where that is possible. net/http does so
// before it closes a connection with something unread.
func (a *Ahead) CloseWrite() error {
	if half, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// watchHeads has the connections that are charged told where heads end.
func watchHeads(standard *http.Server) {
	about, noted := standard.ConnContext, standard.ConnState
	standard.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if ctx = meter.Into(ctx, nc); about != nil {
			ctx = about(ctx, meter.Inner(nc))
		}
		return ctx
	}
	standard.ConnState = func(nc net.Conn, state http.ConnState) {
		if meter.Of(nc).Note(state); noted != nil {
			noted(nc, state)
		}
	}
}

// Unread returns what is yet to be read of a connection of this package before its own bytes.
func Unread(nc net.Conn) []byte {
	if a, ok := meter.Inner(nc).(*Ahead); ok {
		return a.early
	}
	return nil
}

// ServeOne has a server of net/http serve one connection, of which early was
// read already, or closes it when the server was shut down. It returns at once
// and keeps early.
func ServeOne(server *http.Server, nc net.Conn, early []byte) {
	if len(early) > 0 {
		nc = NewAhead(nc, early)
	}
	l := &onceListener{conn: nc}
	_ = server.Serve(l) // returns at once: there is no second connection to accept
	if l.conn != nil {
		_ = nc.Close()
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
