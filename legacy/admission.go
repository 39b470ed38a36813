package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// busyAgain is when a client that has too much under way may try again, in seconds.
const busyAgain = "1"

// tooBusy answers requests that are not to be executed: of a session, a principal or an
// address that has as many under way as there may be, or of a client that left while they
// were queued before us. The latter is only looked at when there is a crowd, since only
// then anything queues.
func (h *HTTP) tooBusy(w http.ResponseWriter, r *http.Request, from *sender, requests int, id jsonrpc.ID) bool {
	s := from.session
	switch {
	case h.gate.Count() > stream.Crowd && quiet.Departed(r):
		w.WriteHeader(statusLeft)
		return true
	case s != nil && s.Calls()+requests > h.inFlight(r):
		h.refuseBusy(w, s, id, "limits.in-flight", "too many requests are under way in this session")
		return true
	}
	return h.tooMany(w, r, from, requests, id)
}

// inFlight returns how many requests may be under way in a session of the client.
func (h *HTTP) inFlight(r *http.Request) int {
	if h.opt.TierClaim == "" && h.opt.TierHeader == "" {
		return h.opt.MaxInFlight
	}
	return max(1, int(float64(h.opt.MaxInFlight)*h.opt.Rates.FactorOf(h.tierOf(r))))
}

// tooMany refuses requests of a principal or from an address that has too many under
// way, or notes them in from.
func (h *HTTP) tooMany(w http.ResponseWriter, r *http.Request, from *sender, requests int, id jsonrpc.ID) bool {
	if h.opt.Rates == nil {
		return false
	}
	leave, ok := h.opt.Rates.Enter(h.senderOf(r), requests)
	if !ok {
		h.refuseBusy(w, from.session, id, "limits.in-flight-principal, limits.in-flight-address", tooManyText)
		return true
	}
	from.place = leave
	return false
}

const tooManyText = "too many requests are under way with these credentials or from this address"

func (h *HTTP) refuseBusy(w http.ResponseWriter, s *session.Session, id jsonrpc.ID, setting, text string) {
	h.guard.Refused(observe.InFlight)
	h.noteBusy(s, setting)
	w.Header().Set("Retry-After", busyAgain)
	web.WriteError(w, http.StatusTooManyRequests, id, jsonrpc.CodeInternal, text)
}

func (h *HTTP) noteBusy(s *session.Session, setting string) {
	line := h.notices.busy.Warn().Str("setting", setting)
	if s != nil {
		line = line.Str(logfield.SessionID, logfield.Short(s.ID()))
	}
	line.Msg("too many requests are under way; refused one")
}

// places returns what counts the requests of a connection in, or says why not; nil: they
// are not counted.
func (h *HTTP) places(r *http.Request) func() (leave func(), err *jsonrpc.Error) {
	if h.opt.Rates == nil {
		return nil
	}
	of := h.senderOf(r)
	return func() (func(), *jsonrpc.Error) {
		leave, ok := h.opt.Rates.Enter(of, 1)
		if !ok {
			h.noteBusy(nil, "limits.in-flight-principal, limits.in-flight-address")
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: tooManyText}
		}
		return leave, nil
	}
}

// statusLeft is what nobody reads: the client has closed the connection.
const statusLeft = 499
