package edge

import (
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/connlimit"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/h1"
)

// Bounds of turning somebody away: how many may wait for their turn, and how long
// each may take to say what it wants.
const (
	maxTurned   = 64
	turnTimeout = 2 * time.Second
)

// crowd is a listener that keeps file descriptors back. A client's call needs
// one to the server as well, files are read again, and somebody must be able to
// ask whether the process lives. So some are kept back: 128, of a large table the
// 256th part, of a small one half. When they are reached newcomers are no longer
// let in: they are answered 503, but for health probes, which get their answer.
// When half of what was kept back is gone too, each takes the place of the one among them who came
// first, or is just closed where there is none. Before that the last
// eighth of the places is for who has less than an eighth of them. The system gives a connection the
// lowest free number, so the number alone tells how full the table is.
type crowd struct {
	net.Listener
	room   int // numbers below this are let in
	last   int // and below this answered
	census census
	log    zerolog.Logger
	full   seldom
	many   seldom
	failed seldom

	number func(net.Conn) int
	told   answered
	turned chan net.Conn // those of them whom nobody serves yet
	away   *http.Server
	ended  sync.WaitGroup
}

// newCrowd guards a socket. What is turned away goes through begin like
// everything else, and asks handler about its health.
func newCrowd(socket net.Listener, tenant func(net.Addr) string, begin func(net.Listener) net.Listener, handler http.Handler, log zerolog.Logger) *crowd {
	table := connlimit.Descriptors()
	reserve := min(table/2, max(128, table/256))
	c := &crowd{
		Listener: socket, room: table - reserve, last: table - reserve/2, log: log, number: number, turned: make(chan net.Conn, maxTurned),
		census: census{listener: socket.Addr(), tenant: tenant},
	}
	c.away = &http.Server{
		Handler:     turnedAway{handler},
		ReadTimeout: turnTimeout, WriteTimeout: turnTimeout,
		MaxHeaderBytes: h1.MaxHead, HTTP2: overHTTP2(),
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	c.away.SetKeepAlivesEnabled(false)
	c.ended.Go(func() { _ = c.away.Serve(begin(&waiting{socket.Addr(), c.turned, make(chan struct{}), sync.Once{}})) })
	return c
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				c.failed.say(func(before int) {
					c.log.Warn().Err(err).Int("before", before).Msg("a connection could not be accepted")
				})
			}
			return nil, err
		}
		switch n := c.number(conn); {
		case n >= c.room:
			c.turnAway(conn, n >= c.last)
		case n >= c.room-c.room/8 && !c.census.leaves(conn.RemoteAddr(), c.room):
			c.turnOut(conn)
		default:
			return conn, nil
		}
	}
}

// turnOut closes a connection of somebody who has many. An answer would keep its place for seconds,
// and who is turned out may come back as often as it likes.
func (c *crowd) turnOut(conn net.Conn) {
	c.many.say(func(before int) {
		c.log.Warn().Str(logfield.Remote, conn.RemoteAddr().String()).Int("room", c.room).Int("before", before).
			Msg("nearly all file descriptors of this process (ulimit -n) are taken: newcomers of this address, which has an eighth or more, are closed")
	})
	_ = conn.Close()
}

// turnAway ends a connection, with an answer if there is room for that, or somebody makes room
// who came before.
func (c *crowd) turnAway(conn net.Conn, beyond bool) {
	c.full.say(func(before int) {
		c.log.Warn().Int("room", c.room).Int("before", before).
			Msg("too many connections for this process's file descriptors (ulimit -n): newcomers are answered 503")
	})
	if next := c.told.let(conn, beyond); next != nil {
		c.tell(next)
		return
	}
	_ = conn.Close()
}

// tell has somebody answered. When they come faster than they can be told, who waits for longest makes room.
func (c *crowd) tell(next net.Conn) {
	for {
		select {
		case c.turned <- next:
			return
		default:
		}
		select {
		case first := <-c.turned:
			_ = first.Close()
		default: // somebody was told meanwhile
		}
	}
}

// end ends those who are being told.
func (c *crowd) end() {
	_ = c.away.Close()
	c.ended.Wait()
	for {
		select {
		case conn := <-c.turned:
			_ = conn.Close()
		default:
			return
		}
	}
}

// number returns a connection's file descriptor, 0 when it has none.
func number(conn net.Conn) (fd int) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(n uintptr) { fd = int(n) })
		}
	}
	return fd
}

// turnedAway answers whoever there is no room for.
type turnedAway struct{ health http.Handler }

// ServeHTTP implements http.Handler.
func (t turnedAway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		t.health.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many connections", http.StatusServiceUnavailable)
}

// waiting is a listener of connections that were accepted already.
type waiting struct {
	addr  net.Addr
	conns <-chan net.Conn
	ended chan struct{}
	once  sync.Once
}

// Accept implements net.Listener.
func (w *waiting) Accept() (net.Conn, error) {
	select {
	case conn := <-w.conns:
		return conn, nil
	case <-w.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (w *waiting) Close() error {
	w.once.Do(func() { close(w.ended) })
	return nil
}

// Addr implements net.Listener.
func (w *waiting) Addr() net.Addr { return w.addr }

// saysEvery is how often the log tells of something that may go on for long.
const saysEvery = 10 * time.Second

// seldom keeps a recurring event from filling the log.
type seldom struct {
	mu     sync.Mutex
	next   time.Time
	missed int
}

// say calls with how often the event happened since it was last told of, unless
// that was just now.
func (s *seldom) say(event func(before int)) {
	s.mu.Lock()
	now := time.Now()
	if now.Before(s.next) {
		s.missed++
		s.mu.Unlock()
		return
	}
	before := s.missed
	s.missed, s.next = 0, now.Add(saysEvery)
	s.mu.Unlock()
	event(before)
}
