// Package h1 is a lean HTTP/1.1 server for plain connections. It serves the
// simple requests that make up nearly all traffic, and hands a connection that
// brings anything else to a net/http server, for good and with what was read.
//
// net/http starts a goroutine for each request, which watches for the client's
// departure, and aborts it at the request's end; it makes contexts, header maps,
// a date and buffers. For small calls that costs as much as the bridge's own
// work. Here one goroutine reads and serves, the head of a request that is the
// same as the last one is not parsed again, departure is watched for only when
// somebody asks, and deadlines are moved only when they must be. The package
// owns connections and the framing of messages. It knows no TLS, no HTTP/2, no
// upgrades, and no MCP.
//
// Key invariants:
//   - What is served here net/http would accept with the same meaning. What is
//     unusual in any way, and every malformed head, is net/http's to judge.
//   - A connection is used further only when the request was read, and the
//     response written, exactly to their ends.
//   - At any time one goroutine at most reads from a connection.
//   - Request.Header and Request.URL are shared by the requests of a connection,
//     and may be kept. Handlers must not change them, as http.Handler demands;
//     they may replace them. Content-Length stands only in Request.ContentLength.
//   - Whatever a client can leave unfinished is bounded in time: a head, a body,
//     or its reading of the response. The first two hold up no shutdown.
package h1

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/internal/roster"
)

// Server serves connections. It is safe for concurrent use.
type Server struct {
	handler  http.Handler
	standard *http.Server
	delegate bool // every connection goes to standard
	ledger   *meter.Ledger

	closing atomic.Bool

	mu        sync.Mutex
	conns     roster.Set[*conn]
	bodies    map[*lateBody]struct{} // of requests that net/http serves
	listeners map[net.Listener]struct{}
	empty     chan struct{} // closed when there are no connections while closing
}

// New returns a server in front of handler. standard gets what is not served
// here; its Handler is set, and MaxHeaderBytes to MaxHead unless it is smaller. Its ReadHeaderTimeout, IdleTimeout, ErrorLog and
// ConnContext hold for all connections, the rest of it only for its own.
func New(handler http.Handler, standard *http.Server) *Server {
	s := &Server{
		handler: handler, standard: standard,
		bodies: map[*lateBody]struct{}{}, listeners: map[net.Listener]struct{}{},
		empty: make(chan struct{}),
	}
	standard.Handler = lateHandler{s}
	watchHeads(standard)
	if standard.MaxHeaderBytes <= 0 || standard.MaxHeaderBytes > MaxHead {
		standard.MaxHeaderBytes = MaxHead
	}
	return s
}

// NewStandard returns a server of which standard serves everything: only that
// bodies are bounded in time is added.
func NewStandard(handler http.Handler, standard *http.Server) *Server {
	s := New(handler, standard)
	s.delegate = true
	return s
}

// Charge has connections charged that are accepted from now on. Who has net/http serve those of
// a listener puts TLS, if there is any, around the ledger's own. It is for before Serve.
func (s *Server) Charge(l *meter.Ledger) { s.ledger = l }

// Serve serves the listener's connections until it fails or the server ends:
// then the error is http.ErrServerClosed. It closes the listener.
func (s *Server) Serve(l net.Listener) error {
	if s.delegate {
		return s.standard.Serve(l)
	}
	defer l.Close()
	if !s.listening(l) {
		return http.ErrServerClosed
	}
	defer s.deaf(l)
	var wait time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
			s.ServeConn(nc)
		case s.closing.Load():
			return http.ErrServerClosed
		case !temporary(err):
			return err
		default:
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.logf("http: Accept error: %v; retrying in %v", err, wait)
			s.pause(wait)
		}
	}
}

// temporary reports an error after which accepting may work again: too many open
// files, or a client that left already.
func temporary(err error) bool {
	var ne interface{ Temporary() bool }
	return errors.As(err, &ne) && ne.Temporary()
}

// pause waits, but not for long once the server is closing.
func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.empty:
	}
}

func (s *Server) listening(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) deaf(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// ServeConn serves a connection that nothing was read of. It takes nc over and returns at once.
func (s *Server) ServeConn(nc net.Conn) {
	if s.delegate {
		s.pass(nc, nil, nil)
		return
	}
	s.start(newConn(s, nc), nil)
}

// GoOn serves a connection that has served requests before, from its next one on, of which early was read
// already. It takes nc over and returns at once; early is not used afterwards.
func (s *Server) GoOn(nc net.Conn, early []byte) {
	cn := newConn(s, nc)
	cn.served = true
	s.start(cn, early)
}

func (s *Server) start(cn *conn, early []byte) {
	if !s.add(cn) {
		cn.in.release()
		_ = cn.nc.Close()
		return
	}
	if !cn.in.put(early) { // more than we ever read ahead: it was net/http's
		go cn.giveUp(append([]byte(nil), early...))
		return
	}
	go cn.serve()
}

// pass has net/http serve one connection, as ServeOne does, charged on a tab, or on one of its own.
func (s *Server) pass(nc net.Conn, early []byte, tab *meter.Tab) {
	if len(early) > 0 {
		nc = NewAhead(nc, early)
	}
	ServeOne(s.standard, s.ledger.Conn(nc, tab), nil)
}

func (s *Server) add(cn *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.conns.Add(cn)
	return true
}

func (s *Server) remove(cn *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns.Remove(cn)
	s.checkEmptyLocked()
}

// checkEmptyLocked tells Shutdown that the last connection is gone.
func (s *Server) checkEmptyLocked() {
	if s.conns.Len() > 0 || !s.closing.Load() {
		return
	}
	select {
	case <-s.empty:
	default:
		close(s.empty)
	}
}

// Shutdown stops accepting, closes connections that wait for a request, or whose
// request has not arrived whole, and waits for the others to finish theirs. The
// same goes for those of net/http. The error wraps that of ctx when it ended first.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, cn := range s.begin() {
		cn.dismiss()
	}
	standard := make(chan error, 1)
	go func() { standard <- s.standard.Shutdown(ctx) }()
	select {
	case <-s.empty:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), <-standard)
	}
	return <-standard
}

// Close closes all listeners and connections at once. It waits for nobody.
func (s *Server) Close() error {
	for _, cn := range s.begin() {
		_ = cn.nc.Close()
	}
	return s.standard.Close()
}

// begin stops accepting and cuts the bodies that net/http waits for. It returns
// the connections that were open.
func (s *Server) begin() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for l := range s.listeners {
		_ = l.Close()
	}
	for b := range s.bodies {
		b.cut()
	}
	s.checkEmptyLocked()
	return s.conns.All()
}

func (s *Server) logf(format string, args ...any) {
	l := s.standard.ErrorLog
	if l == nil {
		l = log.Default() // as net/http does
	}
	l.Printf(format, args...)
}

// headTimeout is how long a head may take, 0 for ever.
func (s *Server) headTimeout() time.Duration {
	if s.standard.ReadHeaderTimeout != 0 {
		return max(s.standard.ReadHeaderTimeout, 0)
	}
	return max(s.standard.ReadTimeout, 0)
}

// idleTimeout is how long a connection may wait for its next request.
func (s *Server) idleTimeout() time.Duration {
	if s.standard.IdleTimeout != 0 {
		return max(s.standard.IdleTimeout, 0)
	}
	return max(s.standard.ReadTimeout, 0)
}

// Of returns the server that New has put in front of standard, nil without one.
func Of(standard *http.Server) *Server {
	if h, ok := standard.Handler.(lateHandler); ok {
		return h.server
	}
	return nil
}
