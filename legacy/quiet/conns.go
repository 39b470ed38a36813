package quiet

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/sessions"
)

// Options tunes the quiet connections of an endpoint. All but Off are needed.
type Options struct {
	Off          bool          // nothing is ever parked
	KeepAlive    time.Duration // longest silence on a parked response
	WriteTimeout time.Duration // how long a client that is behind may take for web.WritePart

	// Gate is the endpoint's: a shutdown waits for responses that are being written, and
	// once it is shut the server gets connections back without another request.
	Gate *gate.Gate
}

// Conns are the connections of an endpoint that no goroutine serves. The methods are
// safe for concurrent use.
type Conns struct {
	opt        Options
	poller     lazyPoller     // of what clients do
	writable   lazyPoller     // of clients that are behind, for room to write to them
	keepAlives *agenda.Agenda // parked responses that may need a keep-alive
	idle       *agenda.Agenda // connections between two requests

	// One response is parked at a time. When hundreds come to rest at once, each in
	// system calls of its own, the runtime makes a thread for every few of them and
	// keeps it: 40 threads and 2 MiB after 20,000 calls.
	parkMu sync.Mutex
}

// maxIdle is how long a connection that was parked waits for another request.
const maxIdle = 2 * time.Minute

// New returns no connections yet. Close ends them.
func New(opt Options) *Conns {
	return &Conns{opt: opt, keepAlives: agenda.New(opt.KeepAlive / 3), idle: agenda.New(maxIdle)}
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

// Run tells everything that is due, and returns how long it may be until it should run
// again.
func (c *Conns) Run() time.Duration { return min(c.keepAlives.Run(0), c.idle.Run(0)) }

// Parkable reports whether the connection of a response is one that can be parked.
func (c *Conns) Parkable(w http.ResponseWriter, r *http.Request) bool {
	return !c.opt.Off && detachable(w, r)
}

// Ready reports whether Park may succeed.
func (c *Conns) Ready(w http.ResponseWriter, r *http.Request) bool {
	return c.Parkable(w, r) && c.poller.open() != nil
}

// Park takes the connection of a response away from its handler, which must return
// then, and puts a parked one in the place of the carrier from, which s holds. The
// connection must be Ready. It
// reports false, and leaves everything as it was, when that fails for now.
func (c *Conns) Park(w http.ResponseWriter, r *http.Request, from sessions.Carrier, s Stream) bool {
	c.parkMu.Lock()
	defer c.parkMu.Unlock()
	sock, early, err := detach(w, r)
	if err != nil { // too many open files, perhaps: the next time may be better
		return false
	}
	p := &parked{conns: c, stream: s, sock: sock, early: string(early)}
	p.beat.Item = p
	if !r.Close {
		p.server, _ = r.Context().Value(http.ServerContextKey).(*http.Server)
	}
	p.take(from)
	return true
}

// EndListeners ends the parked responses that only listen.
func (c *Conns) EndListeners() {
	poller := c.poller.Load()
	if poller == nil {
		return
	}
	for _, o := range poller.Owners() {
		if p, ok := o.(*parked); ok && p.stream.Listens() {
			p.stream.Detach(p)
			p.End(nil)
		}
	}
}

// Close cuts the responses that are left, and gives connections between two requests back to
// their servers. None is taken in afterwards.
func (c *Conns) Close() {
	for _, o := range c.poller.close() {
		switch o := o.(type) {
		case *parked:
			o.abort()
		case *idleConn:
			o.end()
		}
	}
	c.writable.close()
}

// Count returns how many responses are parked, and how many connections wait for
// another request. It costs as much as there are.
func (c *Conns) Count() (responses, idle int) {
	poller := c.poller.Load()
	if poller == nil {
		return 0, 0
	}
	for _, o := range poller.Owners() {
		if _, ok := o.(*parked); ok {
			responses++
		} else {
			idle++
		}
	}
	return responses, idle
}
