package legacy

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// refusals word why a client gets nothing, and tell who watches.
type refusals struct {
	opt     *Options
	guard   web.Guard
	notices *notices
	gate    *gate.Gate
	retired *atomic.Bool // the endpoint ends beside another one
}

// fullAgain is when a client that was refused may try again, in seconds.
const fullAgain = "10"

// writeRefusal relays the upstream's demand for authorization, as the client is to see
// it (H-3).
func (a *refusals) writeRefusal(w http.ResponseWriter, r *http.Request, refusal *downstream.Refusal) {
	seen := *refusal
	if a.opt.Challenge != nil {
		seen.Challenge = a.opt.Challenge(r, refusal.Challenge)
	}
	web.WriteRefusal(w, &seen)
}

// challenged relays a late challenge to a request with the credentials that were refused
// (H-4), and reports whether there was one.
func (a *refusals) challenged(w http.ResponseWriter, r *http.Request, s *session.Session, auth string) bool {
	refusal := s.Challenged(auth)
	if refusal != nil {
		a.writeRefusal(w, r, refusal)
	}
	return refusal != nil
}

// refuseUnknown answers a request of a session that is not here: it has ended, or is of
// another bridge, or of this one before it was started again.
func (a *refusals) refuseUnknown(w http.ResponseWriter, named string, id jsonrpc.ID) {
	if a.gate.IsShut() { // it ended with the bridge, perhaps
		a.refuseStopping(w, id)
		return
	}
	a.guard.Refused(observe.NoSession)
	a.notices.unknown.Info().Str(logfield.SessionID, logfield.Short(named)).Msg("a request named a session that is not here; its client must initialize again")
	web.WriteError(w, http.StatusNotFound, id, jsonrpc.CodeInvalidRequest, "no such session; initialize a new one")
}

// refuseStopping answers a request that comes while the endpoint ends.
func (a *refusals) refuseStopping(w http.ResponseWriter, id jsonrpc.ID) {
	a.guard.Refused(observe.Draining)
	web.WriteStopping(w, id, a.late())
}

// late is what a request is told that comes while the endpoint ends.
func (a *refusals) late() string {
	if a.retired.Load() {
		return "the bridge has new settings, and this session ends under its old ones once its running calls have ended; try again then"
	}
	return sessions.Closed.Error()
}

// refuseConnection refuses a connection that would be a session.
func (a *refusals) refuseConnection(w http.ResponseWriter) {
	if a.gate.IsShut() {
		a.refuseStopping(w, "")
		return
	}
	a.notices.full.Warn().Int("limit", a.opt.MaxSessions).Msg("no place for another connection (limits.sessions); a client was refused")
	w.Header().Set("Retry-After", fullAgain)
	a.guard.Refused(observe.TooMany)
	web.WriteError(w, http.StatusServiceUnavailable, "", jsonrpc.CodeInternal, "too many connections; try again later")
}

// writeFull refuses a client because all sessions there may be are in use.
func (a *refusals) writeFull(w http.ResponseWriter, id jsonrpc.ID) {
	a.notices.full.Warn().Int("limit", a.opt.MaxSessions).Msg("no place for another session (limits.sessions): all are in use; a client was refused")
	w.Header().Set("Retry-After", fullAgain)
	a.guard.Refused(observe.TooMany)
	web.WriteError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternal, "too many sessions; try again later")
}

// writeOpenError answers a failed initialize with status 200, or with the
// upstream's 401 or 403: clients take 400, 404 and 405 for a server of
// the HTTP+SSE era.
func (a *refusals) writeOpenError(w http.ResponseWriter, r *http.Request, accept web.Accept, id jsonrpc.ID, err error) {
	var refusal *downstream.Refusal
	if errors.As(err, &refusal) {
		a.writeRefusal(w, r, refusal)
		return
	}
	web.WriteMessage(w, accept, jsonrpc.AppendError(nil, id, message.AsError(err)))
}
