package legacy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/legacy/h1"
)

// A stream that says nothing for a while, because a person thinks or because
// nothing happens, would cost two goroutines, the request and its buffers: some
// 25 KiB. Therefore it gives its connection away and lets its handler
// return:
//
//	handler: carrier ──quiet for Options.Rest──▶ parked ──end of the stream──▶ idleConn
//	                       (hijack)                │                             │ next request
//	                                               ▼ hang-up                     ▼
//	                                            detached                back to the server
//
// A parked carrier writes to the connection by itself, and a poller
// tells it when the client hangs up. After the end of the response the poller
// waits for the client's next request, with which the server gets the connection
// back. Clients notice nothing of all this.

// parkedConns are the connections that no goroutine serves.
type parkedConns struct {
	poller     lazyPoller     // of what clients do
	writable   lazyPoller     // of clients that are behind, for room to write to them
	keepAlives *agenda.Agenda // parked carriers that may need a keep-alive
	idle       *agenda.Agenda // connections between two requests

	// One stream is parked at a time. When hundreds come to rest at once, each in
	// system calls of its own, the runtime makes a thread for every few of them and
	// keeps it: 40 threads and 2 MiB after 20,000 calls.
	parkMu sync.Mutex
}

// maxIdle is how long a connection that was parked waits for another request.
const maxIdle = 2 * time.Minute

func (l *parkedConns) init(opt *Options) {
	l.keepAlives = agenda.New(opt.KeepAlive / 3)
	l.idle = agenda.New(maxIdle)
}

// lazyPoller is a poller that is made when it is needed, since it has a goroutine
// and a descriptor.
type lazyPoller struct {
	once sync.Once
	atomic.Pointer[park.Poller]
}

// open returns the poller, nil when there cannot be one or none any more.
func (o *lazyPoller) open() *park.Poller {
	o.once.Do(func() {
		if poller, err := park.New(); err == nil {
			o.Store(poller)
		}
	})
	return o.Load()
}

// close ends the poller and returns whom it left waiting.
func (o *lazyPoller) close() []park.Owner {
	o.once.Do(func() {})
	poller := o.Load()
	if poller == nil {
		return nil
	}
	poller.Close()
	return poller.Owners()
}

// run tells everything that is due.
func (l *parkedConns) run() time.Duration { return min(l.keepAlives.Run(0), l.idle.Run(0)) }

// endListeners ends the parked standalone streams.
func (l *parkedConns) endListeners() {
	poller := l.poller.Load()
	if poller == nil {
		return
	}
	for _, o := range poller.Owners() {
		if p, ok := o.(*parked); ok && p.counted && isStandalone(p.stream.ID()) {
			p.stream.Detach(p)
			p.End(nil)
		}
	}
}

// close cuts the connections that are left. None is taken in afterwards.
func (l *parkedConns) close() {
	for _, o := range l.poller.close() {
		switch o := o.(type) {
		case *parked:
			o.abort()
		case *idleConn:
			o.Due()
		}
	}
	l.writable.close()
}

type connKey struct{}

// ConnContext tells HTTP about a request's connection, so that streams that are
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

// departed reports whether the client has gone already, as far as that shows.
func departed(r *http.Request) bool {
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
	if a, ok := hijacked.(*h1.Ahead); ok {
		early = append(early, a.Rest()...)
	}
	_ = hijacked.Close() // the socket stands
	return sock, early, nil
}
