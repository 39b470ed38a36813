// Package mount puts one upstream behind one client-facing endpoint: it joins
// the client-facing server, the bridge and the upstream client, decides which
// clients are handed to the server as they are, and owns the lifetimes of all.
// The command, the demo, the benchmarks and the tests all mount the same way.
package mount

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// Mount is one running endpoint. It is an http.Handler for the MCP path.
type Mount struct {
	dialed   atomic.Int64 // connections to the server that are open
	stopping atomic.Bool  // no requests are taken any more
	retired  atomic.Bool  // another mount takes them
	*legacy.HTTP
	// Backend answers clients that come over other ways than HTTP.
	Backend  downstream.Backend
	Bridge   *bridge.Bridge
	Prober   *negotiate.Prober
	Upstream upstream.Caller

	server   server
	verdicts *verdicts
	limits   Limits
	scope    string               // of what is kept
	forget   func()               // what is known of the server, unless another mount stands before it
	resource *resource.Resource   // nil: there are no metadata
	exchange *authorize.Exchanger // nil: nothing is exchanged

	agent *authorize.Agent // nil: the bridge signs in nowhere
	ctx   context.Context  // ends with the mount
	stop  context.CancelFunc
	work  sync.WaitGroup // watches for sign-ins, and for servers that become others
	away  signal         // a request found nobody
}

// server is what a mount stands in front of. There are three kinds: remote ones,
// over HTTP; local ones, which are processes; and given ones, which somebody else
// speaks with.
type server interface {
	// caller speaks with the server on behalf of the bridge.
	caller() upstream.Caller
	// asModern serves modern requests as they are; nil: nobody can.
	asModern() http.Handler
	// connections does so for requests that come over connections; nil: nobody can.
	connections() *passthrough.Connections
	// bypass is whatever carries requests around the bridge.
	bypass() bypass
	// backend puts around the bridge what this kind makes necessary. It is called
	// once, before anything is served. at is where clients come, who may be served there
	// anew, and what knows which sessions are the bridge's.
	backend(b *bridge.Bridge, at *Mount) downstream.Backend
	// holds reports whether a session is the server's own, and was opened through
	// this mount; sessionCount counts those.
	holds(session string) bool
	sessionCount() int
	// remembers returns what knows all that are relayed to the server as they are; nil:
	// none is.
	remembers() *relayed.Sessions
	// close waits for what was opened for single clients, who are gone by now.
	close()
}

// bypass is traffic that goes around the bridge.
type bypass interface {
	Active() int
	Drain()
	Shutdown(context.Context) error
	Close()
}

// knows has all who ask the server know the same of it.
func (o *Options) knows(of *catalog.Catalog) {
	o.Bridge.Catalog, o.Upstream.Tools, o.Upstream.Account = of, of.Headers(), o.Legacy.Memory.Own()
}

// New mounts an upstream. Nothing is sent before the first request.
func New(opt Options) (*Mount, error) {
	if opt.Draft == nil {
		opt.Draft = dialect.New(dialect.Options{Log: opt.Bridge.Log})
	}
	opt.Upstream.Fallback, opt.away, opt.other = opt.Draft, make(signal, 1), make(signal, 1)
	m := &Mount{
		away:   opt.away,
		Prober: negotiate.NewProber(probeOptions(&opt)), limits: Limits{opt.Legacy.MaxSessions, opt.Bridge.Limits.FlowsPerSession},
		resource: opt.Resource,
	}
	opt.guard()
	opt.Upstream.Dial = m.dialer(&opt)
	if opt.Watch != nil {
		opt.Upstream.Repeated = opt.Watch.Repeated
		if opt.Command != nil {
			opt.Command.Stdio.Tail = new(stdio.Tail)
		}
	}
	m.scope, m.forget = opt.watchCredentials()
	opt.admitInTurn()
	m.ctx, m.stop = context.WithCancel(context.Background())
	opt.Upstream.Excluded = func(tool, reason string) { m.Bridge.Omit(tool, reason) } // when it is there
	opt.knows(catalog.New(m.Prober, opt.Legacy.Memory.Own()))
	m.verdicts = &verdicts{policy: opt.Relay, prober: m.Prober, log: opt.Bridge.Log, blind: opt.keepsCredentials(), signsIn: opt.SignIn != nil || opt.Behalf != nil}
	var err error
	if m.server, err = newServer(&opt, m.verdicts); err != nil {
		m.abandon()
		return nil, err
	}
	suspects := &suspecting{opt.Draft.Caller(m.server.caller()), opt.away, opt.other}
	m.Upstream = suspects
	if opt.Watch != nil {
		m.Upstream = opt.Tap.Caller(m.Upstream, opt.Watch)
		opt.Bridge.Watch, opt.Legacy.Watch = opt.Watch, opt.Watch
	}
	m.Upstream = opt.askInTurn(m.Upstream, m.verdicts)
	if !opt.RefuseModern {
		opt.Bridge.Modern = m.server.asModern()
		if over := m.server.connections(); over != nil {
			opt.Bridge.Connected = over.Open
		}
	}
	opt.Bridge.ListsAsk, opt.Bridge.Hint, opt.Bridge.Stopping = opt.Draft.Active, dialect.Hint, m.stopping.Load
	m.Bridge = bridge.New(opt.Bridge)
	m.Backend = m.server.backend(m.Bridge, m)
	if opt.Watch != nil {
		m.Backend = opt.Tap.Backend(m.Backend, opt.Watch)
	}
	opt.Legacy.Genuine = opt.genuine(m.ctx, m.Upstream)
	m.HTTP = legacy.NewHTTP(opt.Legacy, m.Backend)
	if opt.Behalf != nil {
		m.exchange = opt.Behalf.Exchange
	}
	if opt.SignIn != nil {
		m.agent = opt.SignIn.Agent
		m.work.Go(m.watchSignIns)
	}
	m.work.Go(func() { suspects.watch(m.ctx, m.look) })
	return m, nil
}

// Reach asks the server whether it is there, and returns why not. What follows from what it
// answers takes effect. A legacy command is always there: each client starts its own.
func (m *Mount) Reach(ctx context.Context) error { return m.verdicts.reach(ctx, m.challenged) }

// look is Reach for a server that has answered as another one would. Whether one is still a
// dual-era server shows in all that it says of itself only.
func (m *Mount) look(ctx context.Context) error {
	if !m.verdicts.dual() {
		return m.Reach(ctx)
	}
	m.Prober.Forget()
	return m.Judge(ctx).Err
}

// Away says that a request has found nobody who could answer. Of several such requests one
// says so.
func (m *Mount) Away() <-chan struct{} { return m.away }

// watchSignIns has everybody look at a server again that may be another one to whom
// it knows.
func (m *Mount) watchSignIns() {
	for {
		select {
		case <-m.agent.SignedIn():
			m.Prober.Forget()
			m.Judge(m.ctx)
			m.Bridge.Changed()
		case <-m.ctx.Done():
			return
		}
	}
}

// serveAgain is what the server's own backend hands requests back to.
func (m *Mount) serveAgain(w http.ResponseWriter, r *http.Request) { m.HTTP.ServeHTTP(w, r) }

func newServer(opt *Options, v *verdicts) (server, error) {
	switch {
	case opt.Caller != nil:
		return given{opt.vouching(opt.Caller)}, nil
	case opt.Command != nil:
		return newLocal(opt, v)
	}
	return newRemote(opt, v)
}

// Judge asks the server what it is, in the bridge's own name, and makes what
// follows from it take effect.
func (m *Mount) Judge(ctx context.Context) negotiate.Verdict {
	verdict := m.verdicts.judge(ctx, downstream.Caller{})
	m.challenged(upstream.Refused(&verdict))
	return verdict
}

// challenged learns from a refusal in the bridge's own name where one signs in.
func (m *Mount) challenged(refusal *upstream.Failure) {
	if refusal != nil && m.resource != nil {
		m.resource.Learn(refusal.Challenge)
	}
}

// Relayed reports whether a server with this verdict gets all legacy clients as
// they are.
func (m *Mount) Relayed(v *negotiate.Verdict) bool {
	return m.verdicts.policy != negotiate.RelayNever && v.LegacyServer()
}

// Guessed reports whether a verdict is made up by the bridge: the server answers nobody before the bridge has signed in.
func (m *Mount) Guessed(v *negotiate.Verdict) bool { return m.verdicts.guessed(v) }

// Holds reports whether a session, named by its id, is served or relayed here. No request of a relayed one is
// taken any more once another mount takes them: that one may relay them.
func (m *Mount) Holds(session string) bool {
	return m.HTTP.Holds(session) || !m.retired.Load() && m.server.holds(session)
}

// Recall is Holds for sessions that are in the store alone, too: the request brings them back.
func (m *Mount) Recall(r *http.Request, session string) bool {
	relayed := m.server.remembers()
	return m.HTTP.Recall(r, session) || relayed != nil && !m.retired.Load() && relayed.Keeps(r.Context(), session)
}

// Bequeath has another mount of the same server, at the same endpoint, go on with the sessions that are relayed here.
func (m *Mount) Bequeath(to *Mount) {
	if here, there := m.server.remembers(), to.server.remembers(); here != nil && there != nil {
		here.Bequeath(there)
	}
}

// KeepsCredentials reports whether no credentials of clients reach the server.
func (m *Mount) KeepsCredentials() bool { return m.verdicts.blind }

// Scope names what is kept of this server at this endpoint: mounts that share it find each other's
// sessions in their store.
func (m *Mount) Scope() string { return m.scope }

// Routes returns what is served besides the endpoint, by path, when clients reach
// that at those paths. only reports that there is no other endpoint.
func (m *Mount) Routes(paths []string, only bool) map[string]http.Handler {
	if m.resource == nil {
		return nil
	}
	return m.resource.Routes(paths, only)
}

// Limits returns those of the mount.
func (m *Mount) Limits() Limits { return m.limits }

// Succeed has this mount go on with what waits without a session at another one of the same server, whose callers are
// known in the same way, and whose place it takes. It comes before the first request.
func (m *Mount) Succeed(before *Mount) { m.Bridge.Succeed(before.Bridge) }

// Busy returns how many sessions, requests without one or handed on, and calls that wait without one are left here.
func (m *Mount) Busy() int {
	return m.HTTP.Busy() + m.Bridge.Waiting() + m.server.bypass().Active() + m.server.sessionCount()
}

// Shutdown ends the endpoint: it stops taking requests, gives running calls
// until ctx to finish, then ends every session and closes the upstream.
func (m *Mount) Shutdown(ctx context.Context) error { return m.end(ctx, m.HTTP.Shutdown) }

// Retire is Shutdown for a mount that another one has taken the place of: clients that have nothing under way go on,
// or begin anew, over there at once.
func (m *Mount) Retire(ctx context.Context) error {
	m.retired.Store(true)
	return m.end(ctx, m.HTTP.Retire)
}

func (m *Mount) end(ctx context.Context, sessions func(context.Context) error) error {
	m.stopping.Store(true)
	m.server.bypass().Drain()
	relayed := make(chan error, 1) // side by side: clients of both have one time for their last words
	go func() { relayed <- m.server.bypass().Shutdown(ctx) }()
	err := errors.Join(sessions(ctx), <-relayed)
	m.Bridge.Drain(ctx)
	m.release()
	return err
}

// Close ends the endpoint at once.
func (m *Mount) Close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Shutdown(ended) // its error is that of the context
}

// abandon gives up a mount that could not be made, and what it was given.
func (m *Mount) abandon() {
	m.stop()
	m.forget()
	if m.resource != nil {
		m.resource.Close()
	}
}

// release ends everything behind the sessions, processes side by side: each has
// its time to end, and together they take no longer.
func (m *Mount) release() {
	m.stop()
	if m.agent != nil {
		m.agent.Close()
	}
	if m.resource != nil {
		m.resource.Close()
	}
	if m.exchange != nil {
		m.exchange.Close()
	}
	m.work.Wait()
	m.Bridge.Close()
	var ends sync.WaitGroup
	ends.Go(m.server.close)
	ends.Go(func() { _ = m.Upstream.Close() }) // it has nothing to report but what its calls did
	ends.Wait()
	m.forget() // when nobody is refused anything any more
}
