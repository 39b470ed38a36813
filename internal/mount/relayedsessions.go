package mount

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// Sessions of a server over HTTP that its clients have opened through the bridge.

// Bounds on remembering sessions, where Options leaves them open.
const (
	defaultRelayed     = 10_000
	defaultRelayedIdle = 45 * time.Minute
)

// serverSessions remembers them, and hands their requests on.
type serverSessions struct {
	*relayed.Sessions
	verdicts *verdicts
	proxy    http.Handler
	guarded  bool // each is for who opened it alone
}

// newServerSessions returns what remembers none yet, and knows no proxy. A server that sees no credentials of clients cannot tell
// these apart: then the bridge does, also where it gets the bridge's own for each of them, which it may not compare.
func newServerSessions(opt *Options, v *verdicts) *serverSessions {
	guarded := v.blind || opt.Behalf != nil
	sessions := relayed.New(relayed.Options{
		Capacity: cmp.Or(opt.Legacy.MaxSessions, defaultRelayed), Idle: cmp.Or(opt.Legacy.IdleTimeout, defaultRelayedIdle),
		Guarded: guarded, Store: opt.Legacy.Store, Scope: opt.Legacy.StoreScope, Room: opt.Legacy.StoreRoom, Log: opt.Bridge.Log,
	})
	return &serverSessions{Sessions: sessions, verdicts: v, guarded: guarded}
}

// Relays reports whether sessions of the server may be relayed here.
func (m *Mount) Relays() bool { return m.server.remembers() != nil }

// RelayedBefore reports whether a session that is relayed here is in the store, and was opened before a moment. It is
// relayed here no more once another mount takes them (Holds).
func (m *Mount) RelayedBefore(ctx context.Context, session string, moment time.Time) bool {
	relayed := m.server.remembers()
	return relayed != nil && !m.retired.Load() && relayed.Kept(ctx, session, moment)
}

// anyone returns who serves a request without a session.
func (s *serverSessions) anyone(legacy bool) http.Handler {
	if !legacy {
		return nil
	}
	return s.proxy
}

// within returns who serves a request that names a session which the bridge does not serve, or nil: there is
// none, for who asks. A legacy server that sees clients' own credentials judges itself, and knows its sessions best.
func (s *serverSessions) within(ctx context.Context, session string, isLegacy bool, caller func() downstream.Caller) http.Handler {
	if isLegacy && !s.guarded {
		s.Use(ctx, session)
		return inSession{s, session}
	}
	from := caller()
	switch found, err := s.Find(ctx, session, relayed.Owner{Principal: from.Principal, Tenant: from.Tenant}); {
	case err != nil:
		return http.HandlerFunc(unavailable)
	case !found:
		return nil
	}
	return inSession{s, session}
}

// unavailable answers a request whose session may be in the store, which cannot be asked: its client is not to give
// the session up.
func unavailable(w http.ResponseWriter, _ *http.Request) { web.WriteUnavailable(w, "") }

// crowded answers an initialize whose session the server would have, and nobody would find: all that are remembered
// are in use.
func crowded(id jsonrpc.ID) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		web.WriteJSON(w, http.StatusServiceUnavailable, jsonrpc.AppendError(nil, id, fault.Internal("too many sessions; try again later", fault.Limit("limits.sessions"))))
	})
}

// full reports whether another session could not be remembered. A legacy server that sees who asks has it all the same.
func (s *serverSessions) full(tenant string, isLegacy bool) bool {
	return (s.guarded || !isLegacy) && !s.Room(tenant)
}

// inSession hands a request on that is of a session of the server.
type inSession struct {
	of      *serverSessions
	session string
}

// sessionKey is where a request has what it is in.
type sessionKey struct{}

// ofSession is the session of a request, which is in use until that has been answered.
type ofSession struct {
	id    string
	visit *relayed.Visit
}

// ServeHTTP implements http.Handler.
func (i inSession) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	visit := i.of.Visit(i.session)
	defer visit.End()
	i.of.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, ofSession{i.session, visit})))
}

// answered learns the sessions of the server, and their ends, from the heads of
// its responses. One whose id is too long to be kept is not opened.
func (s *serverSessions) answered(resp *http.Response) error {
	ctx := resp.Request.Context()
	if owner, opens := ctx.Value(openingKey{}).(relayed.Owner); opens {
		return s.opened(ctx, resp.Header.Get(mcp.HeaderSessionID), owner)
	}
	of, in := ctx.Value(sessionKey{}).(ofSession)
	if !in {
		return nil
	}
	session := of.id
	switch fine := resp.StatusCode < http.StatusMultipleChoices; {
	case fine && resp.Request.Method == http.MethodDelete:
		s.Forget(session)
	case fine:
		s.met(session)
		of.visit.Found()
	case resp.StatusCode == http.StatusNotFound && resp.Request.Method == http.MethodPost && s.guarded:
		s.Forget(session) // the server has lost it, and only who opened it comes so far
	}
	return nil
}

// met remembers a session that a legacy server knows, though it was opened before a restart or at another replica:
// when another server takes its place, it is not that one's. A server that is no legacy one any more has lost it.
func (s *serverSessions) met(session string) {
	if !s.verdicts.legacyOnly.Load() {
		return
	}
	s.Met(session)
	if !s.verdicts.legacyOnly.Load() { // what it had lost was forgotten meanwhile
		s.Unmet(session)
	}
}

func (s *serverSessions) opened(ctx context.Context, session string, owner relayed.Owner) error {
	switch {
	case session == "":
	case !mcp.IsSessionID(session):
		return errSessionID
	default:
		s.Open(ctx, session, owner)
	}
	return nil
}

var errSessionID = &passthrough.Unusable{Reason: "the session id of the MCP server cannot be used: it is longer than 1 KiB, or not visible ASCII"}
