package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// fullAgain is when a client that was refused may try again, in seconds.
const fullAgain = "10"

// writeRefusal relays the upstream's demand for authorization, as the client is to see
// it (H-3).
func (h *HTTP) writeRefusal(w http.ResponseWriter, r *http.Request, refusal *downstream.Refusal) {
	seen := *refusal
	if h.opt.Challenge != nil {
		seen.Challenge = h.opt.Challenge(r, refusal.Challenge)
	}
	web.WriteRefusal(w, &seen)
}

// challenged relays a late challenge to a request with the credentials that were refused
// (H-4), and reports whether there was one.
func (h *HTTP) challenged(w http.ResponseWriter, r *http.Request, s *session.Session, auth string) bool {
	refusal := s.Challenged(auth)
	if refusal != nil {
		h.writeRefusal(w, r, refusal)
	}
	return refusal != nil
}

// refuseUnknown answers a request of a session that is not here: it has ended, or is of
// another bridge, or of this one before it was started again.
func (h *HTTP) refuseUnknown(w http.ResponseWriter, named string, id jsonrpc.ID) {
	h.notices.unknown.Info().Str(logfield.SessionID, logfield.Short(named)).Msg("a request named a session that is not here; its client must initialize again")
	web.WriteError(w, http.StatusNotFound, id, jsonrpc.CodeInvalidRequest, "no such session; initialize a new one")
}

// refuseConnection refuses a connection that would be a session.
func (h *HTTP) refuseConnection(w http.ResponseWriter) {
	if h.gate.IsShut() {
		web.WriteShuttingDown(w, "")
		return
	}
	h.notices.full.Warn().Int("limit", h.opt.MaxSessions).Msg("no place for another connection (limits.sessions); a client was refused")
	w.Header().Set("Retry-After", fullAgain)
	h.guard.Refused(observe.TooMany)
	web.WriteError(w, http.StatusServiceUnavailable, "", jsonrpc.CodeInternal, "too many connections; try again later")
}

// leaving has a response be the connection's last while the bridge drains, so that the
// client's next request finds another instance behind a balancer of connections.
func (h *HTTP) leaving(w http.ResponseWriter) {
	if h.gate.IsShut() {
		web.EndConnection(w)
	}
}
