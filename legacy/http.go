package legacy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// HTTP serves the transports that start with an HTTP request: Streamable HTTP
// and WebSocket on the MCP endpoint, HTTP+SSE on paths of its own. A single
// janitor goroutine does for all sessions what would otherwise need a timer for each
// request, stream and session. Close ends it.
type HTTP struct {
	opt     Options
	backend downstream.Backend
	relayer downstream.Relayer // the backend's; may be nil
	guard   web.Guard
	notices notices

	admission *admission
	refusals  *refusals
	replicas  *replicas

	sessions  *session.Set      // Streamable HTTP
	channels  *channel.Registry // WebSocket and HTTP+SSE
	guests    guests            // no session at all
	streams   *stream.Endpoint
	exchanges *exchange.Endpoint
	pings     *agenda.Agenda // channels that may need a keep-alive

	gate    *gate.Gate // requests under way; shut, it ends the streams of GET
	retired atomic.Bool
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	leaving sync.WaitGroup // calls that go on in another process, which the store is told
}

// NewHTTP returns a server in front of the backend and starts its janitor.
func NewHTTP(opt Options, backend downstream.Backend) *HTTP {
	opt = opt.withDefaults()
	h := &HTTP{
		opt: opt, backend: backend, guard: web.NewGuard(opt.AllowedHosts, opt.AllowedOrigins, opt.Watch, opt.Logger),
		notices: newNotices(opt.Logger),
		pings:   agenda.New(min(opt.KeepAlive/3, opt.ParkAfter)),
		gate:    gate.New(),
		stop:    make(chan struct{}), stopped: make(chan struct{}),
	}
	h.relayer = backend.Relayer()
	h.furnish()
	go h.tend()
	return h
}

// furnish makes the rooms behind the front.
func (h *HTTP) furnish() {
	opt := &h.opt
	h.refusals = &refusals{opt: opt, guard: h.guard, notices: &h.notices, gate: h.gate, retired: &h.retired}
	h.streams = stream.NewEndpoint(stream.Options{
		Log: opt.Log, MaxStreams: opt.MaxStreams, MaxOwed: opt.maxOwed(), MaxPending: opt.MaxPending,
		KeepAlive: opt.KeepAlive, Retention: opt.Retention, WriteTimeout: opt.WriteTimeout, ParkAfter: opt.ParkAfter, NoPark: opt.NoPark, Poll: opt.Poll, PollPause: opt.PollPause,
		Gate: h.gate, Watch: opt.Watch, Logger: opt.Logger, Slow: h.notices.slow,
	})
	h.exchanges = exchange.NewEndpoint(exchange.Options{
		Streams: h.streams, Gate: h.gate, Refuse: h.refusals.writeRefusal,
		CommitDelay: opt.CommitDelay, WriteTimeout: opt.WriteTimeout, Retention: opt.Retention, Due: h.backend.Due, Replica: opt.Replica, StoreWait: opt.StoreWait,
	})
	_, blind := opt.Peers.(nobody)
	h.sessions = session.NewSet(session.Options{
		Backend: h.backend, Streams: h.streams, Gate: h.gate, NoPush: opt.NoGET,
		Principal: opt.Principal, CredentialsEndHere: opt.CredentialsEndHere, Vouched: opt.Vouched, Genuine: opt.Genuine,
		MaxSessions: opt.MaxSessions, IdleTimeout: opt.IdleTimeout, Memory: opt.Memory,
		Store: opt.Store, StoreScope: opt.StoreScope, Room: opt.StoreRoom, Replica: opt.Replica,
		Unload: opt.Unload, MaxUnloaded: opt.MaxUnloaded, Calls: h.exchanges, Others: opt.Peers.Others, Blind: blind,
		Watch: opt.Watch, Logger: opt.Logger, Evicted: h.notices.evicted, Late: h.notices.late,
	})
	h.channels = channel.NewRegistry(opt.MaxSessions)
	h.admission = &admission{opt: opt, guard: h.guard, notices: &h.notices, gate: h.gate, sessions: h.sessions, streaming: budget.NewPlaces(opt.MaxSessions)}
	opt.Peers = charged{opt.Peers, h.admission}
	h.replicas = &replicas{opt: opt, admission: h.admission, refusals: h.refusals, sessions: h.sessions, gate: h.gate, exchanges: h.exchanges, notices: &h.notices, blind: blind}
}

// admit judges a request's origin and host, and refuses it if they are wrong.
func (h *HTTP) admit(w http.ResponseWriter, r *http.Request) bool {
	web.EndConnection(h.gate, w)
	if !h.guard.Admit(w, r) {
		return false
	}
	if h.opt.Admit == nil || r.Method == http.MethodOptions { // which carries no credentials
		return true
	}
	refusal := h.opt.Admit(r)
	if refusal != nil {
		web.WriteRefusal(w, refusal)
	}
	return refusal == nil
}

// Sessions returns the number of live sessions, on all transports.
func (h *HTTP) Sessions() int { return h.sessions.Len() + h.channels.Len() }

// Busy returns how much keeps the endpoint from its end: live sessions, and requests under way without one.
func (h *HTTP) Busy() int { return h.Sessions() + h.guests.len() }

// Shutdown stops taking requests, lets those under way finish until ctx is done,
// then ends all sessions and the janitor. Answers to server requests are still
// taken meanwhile, since requests under way may wait for them, and so are clients that come back for
// the rest of a stream. It returns ctx's error when requests had to be cut off.
func (h *HTTP) Shutdown(ctx context.Context) error {
	h.refuse()
	err := h.drain(ctx)
	h.Close()
	return err
}

// vacateEvery is how often it is looked which sessions have nothing under way any more.
const vacateEvery = 100 * time.Millisecond

// errRetired gives up a connection whose client another endpoint serves from now on.
var errRetired = errors.New("the bridge has new settings; connect again")

// farewell says why connections end that have nothing under way.
func (h *HTTP) farewell() error {
	if h.retired.Load() {
		return errRetired
	}
	return sessions.Closed
}

// Retire is Shutdown for an endpoint beside which another one serves its clients from now on. A call that takes
// long keeps its own session here only: whatever has nothing under way ends at once, so that its client goes on,
// or begins anew, over there.
func (h *HTTP) Retire(ctx context.Context) error {
	h.retired.Store(true) // before anybody is refused
	h.refuse()
	err := h.drain(ctx)
	h.Close()
	return err
}

// drain waits for what is under way until ctx ends, and has leave meanwhile what has nothing under way: sessions that
// another endpoint serves, and connections, whose clients can be served elsewhere once they connect again.
func (h *HTTP) drain(ctx context.Context) (err error) {
	for err = context.DeadlineExceeded; err != nil && ctx.Err() == nil; {
		if h.retired.Load() {
			h.sessions.Vacate()
		}
		h.channels.Vacate(h.farewell())
		step, cancel := context.WithTimeout(ctx, vacateEvery)
		err = h.finish(step)
		cancel()
	}
	return err
}

// fetchedEvery is how often it is looked whether clients have come for what they are owed.
const fetchedEvery = 50 * time.Millisecond

// finish waits until nothing is under way, no client can be expected to fetch the end of a call any more, and what
// counts for nothing is taken back from the store, or else returns ctx's error when that ends first.
func (h *HTTP) finish(ctx context.Context) error {
	look := time.NewTicker(fetchedEvery)
	defer look.Stop()
	for {
		if err := h.gate.Wait(ctx); err != nil {
			return err
		}
		if !h.sessions.Owes() {
			return nil
		}
		select { // an answer may begin something meanwhile
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends all sessions and the janitor at once. What is under way gets its last words, for which
// its client has a second. It is idempotent.
func (h *HTTP) Close() {
	h.refuse()
	h.once.Do(func() { close(h.stop) })
	<-h.stopped
	h.sessions.Close()
	h.leaving.Wait()
	h.guests.close()
	if h.retired.Load() {
		h.channels.Vacate(errRetired)
	}
	h.channels.Close(sessions.Closed)
	h.hearOut()
	h.streams.Close()
}

// lastWords is how long clients may take for the answers with which their calls end. It is that of
// package passthrough, where the same is said of requests that are handed on.
const lastWords = time.Second

// hearOut waits until what has been ended has said so to its client: a call ends on a goroutine of
// its own, and nothing may be closed before its answer is written. A client that reads nothing
// holds up nobody.
func (h *HTTP) hearOut() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	_ = h.gate.Wait(ctx) // what is left has had its time
}

// Renew makes sure of the calls that are kept, after a time in which other
// replicas may have taken this one for dead.
func (h *HTTP) Renew() { h.sessions.Renew() }

// refuse stops taking requests and ends the standalone streams.
func (h *HTTP) refuse() {
	if h.gate.Shut() {
		h.leaving.Go(h.sessions.Leave) // the calls that wait go on in another process; nobody waits for a store that hangs
		h.streams.EndListeners()
		h.channels.Refuse()
	}
}

// janitorStep is the shortest time between two rounds of the janitor, so that
// a crowd of due times costs few wake-ups.
const janitorStep = 20 * time.Millisecond

// tend is the janitor: it looks after everything that is due. Nothing but a crowd
// has to wake it, because whatever is added to an agenda is due later than one
// full delay of that agenda, which is the longest that tend sleeps.
func (h *HTTP) tend() {
	defer close(h.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-timer.C:
		case <-h.streams.Crowded():
		}
		next := min(h.exchanges.Run(), h.pings.Run(0), h.streams.Run())
		h.sessions.Expire()
		timer.Reset(max(next, janitorStep))
	}
}
