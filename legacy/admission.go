package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
)

// busyAgain is when a client that has too much under way may try again, in seconds.
const busyAgain = "1"

// tooBusy answers requests that are not to be executed: of a session that has as many
// under way as there may be, or of a client that left while they were queued before us.
// The latter is only looked at when there is a crowd, since only then anything queues.
func (h *HTTP) tooBusy(w http.ResponseWriter, r *http.Request, s *session, requests int, id jsonrpc.ID) bool {
	switch {
	case h.gate.Count() > stream.Crowd && quiet.Departed(r):
		w.WriteHeader(statusLeft)
		return true
	case s == nil || int(s.calls.Load())+requests <= h.opt.MaxInFlight:
		return false
	}
	h.notices.busy.Warn().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Int("limit", h.opt.MaxInFlight).
		Msg("a session has too many requests under way (limits.in-flight); refused one")
	w.Header().Set("Retry-After", busyAgain)
	web.WriteError(w, http.StatusTooManyRequests, id, jsonrpc.CodeInternal, "too many requests are under way in this session")
	return true
}

// statusLeft is what nobody reads: the client has closed the connection.
const statusLeft = 499
