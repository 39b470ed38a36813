package legacy

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
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
	table   *sessions.Table[*session]
	keeper  *keeper // nil: sessions end with the process

	channels *channel.Registry // WebSocket and HTTP+SSE

	streams *stream.Endpoint
	commits *agenda.Agenda // exchanges that become streams if they take long (E-6)
	pings   *agenda.Agenda // channels that may need a keep-alive

	gate    *gate.Gate // requests under way; shut, it ends the streams of GET
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
}

// NewHTTP returns a server in front of the backend and starts its janitor.
func NewHTTP(opt Options, backend downstream.Backend) *HTTP {
	opt = opt.withDefaults()
	h := &HTTP{
		opt: opt, backend: backend, guard: web.NewGuard(opt.AllowedHosts, opt.AllowedOrigins, opt.Watch),
		notices: newNotices(opt.Logger),
		commits: agenda.New(opt.CommitDelay),
		pings:   agenda.New(min(opt.KeepAlive/3, opt.Rest)),
		gate:    gate.New(),
		stop:    make(chan struct{}), stopped: make(chan struct{}),
	}
	h.streams = stream.NewEndpoint(stream.Options{
		Log: opt.Log, MaxStreams: opt.MaxStreams, MaxPending: opt.MaxPending,
		KeepAlive: opt.KeepAlive, Retention: opt.Retention, WriteTimeout: opt.WriteTimeout, Rest: opt.Rest, NoPark: opt.NoPark, Poll: opt.Poll,
		Gate: h.gate, Watch: opt.Watch, Logger: opt.Logger, Slow: h.notices.slow,
	})
	h.relayer = backend.Relayer()
	h.table = sessions.NewTable(sessions.TableOptions[*session]{
		Capacity: opt.MaxSessions, Idle: opt.IdleTimeout, Recent: recentUse, Busy: (*session).busy, Ended: (*session).end,
	})
	h.channels = channel.NewRegistry(opt.MaxSessions)
	if opt.Store != nil {
		h.keeper = newKeeper(h)
	}
	go h.tend()
	return h
}

// ServeHTTP serves the MCP endpoint.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.admit(w, r) || h.handOn(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.listen(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	case http.MethodOptions:
		web.Preflight(w, r)
	default:
		web.WriteNotAllowed(w, "", "GET, POST, DELETE, OPTIONS")
	}
}

// admit judges a request's origin and host, and refuses it if they are wrong.
func (h *HTTP) admit(w http.ResponseWriter, r *http.Request) bool {
	h.leaving(w)
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

// listen sorts out what a GET on the MCP endpoint opens.
func (h *HTTP) listen(w http.ResponseWriter, r *http.Request) {
	switch {
	case !h.opt.NoWebSocket && transport.IsWebSocket(r):
		h.webSocket(w, r)
	case h.opt.SSEMessages != "" && web.Header(r.Header, mcp.HeaderSessionID) == "" && web.Header(r.Header, mcp.HeaderLastEventID) == "":
		h.openSSE(w, r, h.opt.SSEMessages) // E-28
	default:
		h.get(w, r)
	}
}

// Sessions returns the number of live sessions, on all transports.
func (h *HTTP) Sessions() int { return h.table.Len() + h.channels.Len() }

// Shutdown stops taking requests, lets those under way finish until ctx is done,
// then ends all sessions and the janitor. Answers to server requests are still
// taken meanwhile, since requests under way may wait for them. It returns ctx's
// error when requests had to be cut off.
func (h *HTTP) Shutdown(ctx context.Context) error {
	h.refuse()
	err := h.gate.Wait(ctx)
	h.Close()
	return err
}

// Close ends all sessions and the janitor at once. It is idempotent.
func (h *HTTP) Close() {
	h.refuse()
	h.once.Do(func() { close(h.stop) })
	<-h.stopped
	h.table.Close()
	if h.keeper != nil {
		h.keeper.close()
	}
	h.channels.Close(sessions.Closed)
	h.streams.Close()
}

// Renew makes sure of the calls that wait for their clients, after a time in which other
// replicas may have taken this one for dead.
func (h *HTTP) Renew() {
	for _, use := range h.table.All() {
		if use.Value.kept != nil {
			use.Value.conv.Renew()
		}
	}
}

// leaveCalls has the calls that wait for their clients go on in another process.
func (h *HTTP) leaveCalls() {
	for _, use := range h.table.All() {
		if use.Value.kept != nil {
			use.Value.conv.Leave()
		}
	}
}

// refuse stops taking requests and ends the standalone streams.
func (h *HTTP) refuse() {
	if h.gate.Shut() {
		h.leaveCalls()
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
		next := min(h.commits.Run(0), h.pings.Run(0), h.streams.Run())
		h.table.Expire()
		timer.Reset(max(next, janitorStep))
	}
}
