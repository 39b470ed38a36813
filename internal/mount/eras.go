package mount

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// eras is the bridge as a backend that hands legacy clients to a server of their
// own era where that is more faithful than translating for them. It
// decides by the server's verdict, once per session, and remembers which
// sessions are the server's own.
type eras struct {
	*bridge.Bridge
	policy negotiate.RelayPolicy
	prober *negotiate.Prober
	caller upstream.Caller
	next   http.Handler
	log    zerolog.Logger
	limit  int
	idle   time.Duration

	// legacyOnly is the latest verdict: all clients are the server's.
	legacyOnly atomic.Bool

	mu      sync.Mutex
	relayed *sessions.Table[struct{}]
}

var _ legacy.Relayer = (*eras)(nil)

// Bounds on remembering sessions, where Options leaves them open.
const (
	defaultRelayed     = 10_000
	defaultRelayedIdle = 45 * time.Minute
)

func newEras(m *Mount, opt *Options) *eras {
	e := &eras{
		Bridge: m.Bridge, policy: opt.Relay, prober: m.Prober, caller: m.Upstream, next: m.relay, log: opt.Bridge.Log,
		limit: opt.Legacy.MaxSessions, idle: opt.Legacy.IdleTimeout,
	}
	if e.limit <= 0 {
		e.limit = defaultRelayed
	}
	if e.idle <= 0 {
		e.idle = defaultRelayedIdle
	}
	e.relayed = e.table()
	return e
}

func (e *eras) table() *sessions.Table[struct{}] {
	return sessions.NewTable(sessions.TableOptions[struct{}]{Capacity: e.limit, Idle: e.idle})
}

// Relay implements legacy.Relayer. Only initialize waits for a verdict; what has
// no session follows the latest one.
func (e *eras) Relay(r *http.Request, msg *jsonrpc.Message, caller func() legacy.Caller) http.Handler {
	session := r.Header.Get(mcp.HeaderSessionID)
	switch {
	case msg != nil && msg.Method == mcp.MethodInitialize && msg.Kind() == jsonrpc.Request:
		if !e.relays(r.Context(), caller(), msg.Params) {
			return nil
		}
		r.Header.Del(mcp.HeaderSessionID) // of a session that is dead: this opens a new one
		return opening{e.next}
	case e.legacyOnly.Load(), session != "" && e.holds(session):
		return e.next
	}
	return nil
}

func (e *eras) relays(ctx context.Context, caller legacy.Caller, params []byte) bool {
	v := e.prober.Probe(ctx, caller.Principal, upstream.NewPeer(e.caller, upstream.Call{
		Principal: caller.Principal, Authorization: caller.Authorization, Params: probeParams,
	}))
	e.note(&v)
	return v.Relays(e.policy, params)
}

// probeParams ask in the bridge's own name: the answer may serve others too.
var probeParams = translate.Params(nil, nil, &translate.Envelope{
	Method: mcp.MethodDiscover, Version: string(mcp.V20260728),
	ClientInfo: []byte(`{"name":"mcp-bridge","version":"1"}`), Capabilities: []byte("{}"),
})

// note remembers what the server is. When it ceases to be a legacy one, it has
// lost the sessions of its clients: they must learn that, and begin anew.
func (e *eras) note(v *negotiate.Verdict) {
	if v.Era == negotiate.Unknown {
		return // it says nothing new
	}
	now := v.LegacyServer()
	if e.legacyOnly.Swap(now) == now {
		return
	}
	if now {
		e.log.Info().Str(logfield.Era, v.Era.String()).Strs("versions", v.Versions).
			Msg("the upstream speaks no newer revision than its clients: they are relayed to it unchanged")
		return
	}
	e.log.Info().Str(logfield.Era, v.Era.String()).Msg("the upstream is no legacy server any more: clients are translated for")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.relayed = e.table()
}

func (e *eras) sessions() *sessions.Table[struct{}] {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.relayed
}

func (e *eras) holds(session string) bool {
	_, ok := e.sessions().Get(session)
	return ok
}

// own returns how many sessions of the server only this mount knows. Those of a
// legacy server need nobody to know them.
func (e *eras) own() int {
	if e.legacyOnly.Load() {
		return 0
	}
	table := e.sessions()
	table.Expire()
	return table.Len()
}

// opening marks a request that opens a session of the server.
type opening struct{ next http.Handler }

type openingKey struct{}

// ServeHTTP implements http.Handler.
func (o opening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), openingKey{}, true)))
}

// answered learns the sessions of the server, and their ends, from the heads of
// its responses.
func (m *Mount) answered(resp *http.Response) {
	if m.eras == nil {
		return
	}
	switch table := m.eras.sessions(); {
	case resp.Request.Context().Value(openingKey{}) != nil:
		if session := resp.Header.Get(mcp.HeaderSessionID); session != "" {
			table.Expire()
			table.Add(session, struct{}{})
		}
	case resp.Request.Method == http.MethodDelete && resp.StatusCode < http.StatusMultipleChoices:
		table.Remove(resp.Request.Header.Get(mcp.HeaderSessionID))
	}
}

// Judge asks the server what it is, in the bridge's own name, and makes what
// follows from it take effect.
func (m *Mount) Judge(ctx context.Context) negotiate.Verdict {
	v := m.Prober.Probe(ctx, "", upstream.NewPeer(m.Upstream, upstream.Call{Params: probeParams}))
	if m.eras != nil {
		m.eras.note(&v)
	}
	return v
}

// Relayed reports whether a server with this verdict gets all legacy clients as
// they are.
func (m *Mount) Relayed(v *negotiate.Verdict) bool { return m.eras != nil && v.LegacyServer() }
