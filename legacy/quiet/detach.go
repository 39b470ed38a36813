package quiet

import (
	"context"
	"net"
	"net/http"

	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/legacy/h1"
)

type connKey struct{}

// ConnContext tells handlers about a request's connection, so that streams that are
// quiet for long need no goroutine. It is made for http.Server.ConnContext, also
// with an h1.Server in front; without it every stream keeps its goroutine.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if a, ok := conn.(*h1.Ahead); ok {
		conn = a.Conn
	}
	if !park.Parkable(conn) {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// Departed reports whether the client has gone already, as far as that shows.
func Departed(r *http.Request) bool {
	if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		return park.Left(conn)
	}
	return r.Context().Err() != nil
}

// detachable reports whether the response's connection can be taken away from
// net/http and be given back after the end of the response. That takes HTTP/1.1,
// whose framing shows the end, without TLS, whose state cannot be moved, and a
// response that nothing else watches.
func detachable(w http.ResponseWriter, r *http.Request) bool {
	if r.TLS != nil || r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Context().Value(connKey{}) == nil {
		return false
	}
	if r.Method != http.MethodPost && r.ContentLength != 0 {
		return false // nobody has read the body
	}
	_, hijacker := w.(http.Hijacker)
	_, server := r.Context().Value(http.ServerContextKey).(*http.Server)
	return hijacker && server
}

// detach takes the connection away from net/http and the runtime, with what the
// client has sent ahead. An error leaves everything as it is.
func detach(w http.ResponseWriter, r *http.Request) (sock park.Socket, early []byte, err error) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if sock, err = park.Dup(conn); err != nil {
		return 0, nil, err
	}
	hijacked, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		sock.Close()
		return 0, nil, err
	}
	if n := buf.Reader.Buffered(); n > 0 {
		early, _ = buf.Reader.Peek(n)
		early = append([]byte(nil), early...)
	}
	early = append(early, h1.Unread(hijacked)...)
	_ = hijacked.Close() // the socket stands
	return sock, early, nil
}
