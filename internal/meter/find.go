package meter

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// Of returns the Conn that a connection of net/http is, or has below TLS; nil without one.
func Of(nc net.Conn) *Conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	return Inside(nc)
}

// Inside is Of for a connection without TLS.
func Inside(nc net.Conn) *Conn {
	c, _ := nc.(*Conn)
	return c
}

// Inner returns what a Conn is made of; other connections as they are.
func Inner(nc net.Conn) net.Conn {
	if c, ok := nc.(*Conn); ok {
		return c.Conn
	}
	return nc
}

type key struct{}

// Into tells handlers of a connection, for From.
func Into(ctx context.Context, nc net.Conn) context.Context {
	if c := Of(nc); c != nil {
		return context.WithValue(ctx, key{}, c)
	}
	return ctx
}

// From returns the connection of a request, nil without one.
func From(r *http.Request) *Conn {
	c, _ := r.Context().Value(key{}).(*Conn)
	return c
}
