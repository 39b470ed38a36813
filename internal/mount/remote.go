package mount

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"sync"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// remote is a server over HTTP, to which modern requests, and legacy clients of
// Streamable HTTP, are handed with whole exchanges. It remembers which sessions
// are the server's own.
type remote struct {
	opt      *Options
	verdicts *verdicts
	client   upstream.Caller
	proxy    *passthrough.Proxy
	servers  *relay.HTTP
	handover *handover
	sessions *serverSessions
}

// newRemote makes what speaks with a server over HTTP.
func newRemote(opt *Options, v *verdicts) (*remote, error) {
	own := opt.SignIn != nil || opt.Behalf != nil // then these replace clients' credentials by their own
	opt.Upstream.DropAuthorization = opt.DropAuthorization && !own
	caller, err := streamable.New(opt.Upstream)
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(opt.Upstream.URL)
	if err != nil {
		return nil, err // impossible: NewHTTP has parsed it
	}
	r := &remote{opt: opt, verdicts: v, client: opt.vouching(opt.signing(caller, v)), sessions: newServerSessions(opt, v)}
	policy := opt.Upstream.Policy()
	if own && (opt.Behalf == nil || opt.Behalf.Exchange == nil) {
		policy.DropAuthorization = true // others sign afterwards
	}
	r.proxy = passthrough.New(passthrough.Options{
		URL: endpoint, Policy: policy, TLS: opt.Upstream.TLS,
		Dial: opt.Upstream.Dial, DialTimeout: opt.Upstream.DialTimeout, MaxIdle: opt.Upstream.MaxIdle, Wrap: opt.transport, Answered: r.sessions.answered, Log: opt.Upstream.Log,
		Challenge: opt.challenge(), Limits: limitsOf(opt),
	})
	r.sessions.proxy = r.proxy
	r.servers = relay.NewHTTP(relay.HTTPOptions{
		URL: endpoint, Policy: policy, TLS: opt.Upstream.TLS,
		Dial: opt.Upstream.Dial, DialTimeout: opt.Upstream.DialTimeout, MaxIdle: opt.Upstream.MaxIdle, Wrap: opt.transport, MaxMessage: opt.Upstream.MaxResponse, UserAgent: opt.Upstream.UserAgent, Log: opt.Upstream.Log,
		Silence: opt.Bridge.Limits.Flow.Round,
	})
	v.outgrown = append(v.outgrown, r.sessions.ForgetAll) // not with each change: one may be a guess, and the server have all of them
	return r, nil
}

// challenge is how challenges of the server go down; nil: as they are.
func (o *Options) challenge() func(*http.Request, []string) []string {
	if o.Resource == nil {
		return nil
	}
	return o.Resource.Challenge
}

func (r *remote) caller() upstream.Caller { return r.client }

func (r *remote) bypass() bypass { return r.proxy }

// asModern is the proxy. A modern client has no session: where somebody's session of the server is
// for who opened it, no request reaches it by saying that it is a modern one.
func (r *remote) asModern() http.Handler {
	if !r.sessions.guarded {
		return r.proxy
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get(mcp.HeaderSessionID) != "" {
			req.Header = maps.Clone(req.Header) // which the connection's requests share
			delete(req.Header, mcp.HeaderSessionID)
		}
		r.proxy.ServeHTTP(w, req)
	})
}

func (r *remote) connections() *passthrough.Connections {
	return passthrough.NewConnections(passthrough.ConnectionOptions{
		Server: verbatim{r.client}, Turns: r.opt.Legacy.Turns, Limits: limitsOf(r.opt), Log: r.opt.Bridge.Log,
		Legacy: func(context.Context) bool { return r.verdicts.legacyOnly.Load() },
		Modern: r.verdicts.modern,
	})
}

// verbatim sends requests of modern clients that have no headers yet.
type verbatim struct{ upstream.Caller }

// Verbatim implements passthrough.Sender.
func (v verbatim) Verbatim(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	call.Link.Pass() // over HTTP requests overtake each other
	own := *call
	own.AsIs = true
	return v.Do(ctx, &own, notify)
}

// Connect implements relay.Server. A line may have a stream for as long as it lasts: so it takes
// a place of what never ends.
func (r *remote) Connect(caller downstream.Caller, inbox relay.Inbox) (relay.Line, error) {
	if r.opt.Legacy.Endless == nil {
		return r.connect(caller, inbox)
	}
	free, _ := r.opt.Legacy.Endless.Take(caller.Tenant)
	if free == nil {
		return nil, fault.Internal("too many streams are open at servers, with these credentials or from this address", fault.Limit("ulimit -n"))
	}
	line, err := r.connect(caller, inbox)
	if err != nil {
		free()
		return nil, err
	}
	return placed{line, free}, nil
}

// placed is a line with a place.
type placed struct {
	relay.Line
	free func()
}

// Close implements relay.Line.
func (p placed) Close() {
	p.Line.Close()
	p.free()
}

// connect opens a line over the transport that the server speaks.
func (r *remote) connect(caller downstream.Caller, inbox relay.Inbox) (relay.Line, error) {
	if r.verdicts.of(context.Background(), func() downstream.Caller { return caller }).httpSSE {
		return r.servers.SSE().Connect(caller, inbox)
	}
	return r.servers.Connect(caller, inbox)
}

func (r *remote) backend(b *bridge.Bridge, at *Mount) downstream.Backend {
	r.handover = newHandover(b, r.verdicts, r, r.opt, r.opt.brief)
	if r.opt.Relay == negotiate.RelayNever { // it ends sessions with the era of their server
		return r.handover
	}
	return &eras{r.handover, r, at}
}

func (r *remote) holds(session string) bool { return session != "" && r.sessions.Holds(session) }

func (r *remote) sessionCount() int { return r.sessions.Len() }

func (r *remote) remembers() *relayed.Sessions {
	if r.opt.Relay == negotiate.RelayNever {
		return nil
	}
	return r.sessions.Sessions
}

func (r *remote) close() {
	r.handover.close()
	r.servers.Close()
	r.sessions.Close()
}

// eras is a handover of whole exchanges, where the client's transport is the
// server's.
type eras struct {
	*handover
	server *remote
	mount  *Mount
}

var _ downstream.Relayer = (*eras)(nil)

// Modern implements downstream.Backend. A server of HTTP+SSE has no address to which
// modern requests could be handed.
func (e *eras) Modern() http.Handler {
	if e.verdicts.httpSSE.Load() {
		return nil
	}
	return e.handover.Modern()
}

// Relayer implements downstream.Backend.
func (e *eras) Relayer() downstream.Relayer { return e }

// Relay implements downstream.Relayer. Only initialize waits for a verdict; what has
// no session follows the latest one. A session that the bridge serves, or has served, stays its own.
func (e *eras) Relay(r *http.Request, msg *jsonrpc.Message, caller func() downstream.Caller) http.Handler {
	session := r.Header.Get(mcp.HeaderSessionID)
	if msg != nil && msg.Method == mcp.MethodInitialize && msg.Kind() == jsonrpc.Request {
		from := caller()
		verdict := e.verdicts.judge(r.Context(), from)
		if !verdict.Relays(e.verdicts.policy, msg.Params) || verdict.HTTPSSE {
			return nil
		}
		if e.server.sessions.full(from.Tenant, verdict.LegacyServer()) {
			return crowded(msg.ID)
		}
		r.Header = maps.Clone(r.Header)       // which the connection's requests share
		delete(r.Header, mcp.HeaderSessionID) // of a session that is dead: this opens a new one
		return opening{e.server, http.HandlerFunc(e.mount.serveAgain), relayed.Owner{Principal: from.Principal, Tenant: from.Tenant}}
	}
	if e.verdicts.disputed.Load() { // then it is asked for twice
		caller = sync.OnceValue(caller)
	}
	switch is := e.verdicts.of(r.Context(), caller); {
	case is.httpSSE: // messages change their transport: the session is the bridge's
		return nil
	case session == "":
		return e.server.sessions.anyone(is.legacy)
	case is.legacy && e.mount.HTTP.Owns(session), !is.legacy && is.modern:
		return nil
	default:
		return e.server.sessions.within(r.Context(), session, is.legacy, caller)
	}
}
