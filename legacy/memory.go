package legacy

import (
	"errors"
	"net/http"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// accountOf returns what a request is charged to.
func (h *HTTP) accountOf(s *session.Session, r *http.Request) *budget.Account {
	switch {
	case h.opt.Memory == nil:
		return nil
	case s != nil:
		return s.Account()
	}
	return h.opt.Memory.Guest(h.sessions.Principal(r))
}

// owes refuses a request that was lent memory for its body, when its session holds too
// much.
func (h *HTTP) owes(w http.ResponseWriter, r *http.Request, from *sender, id jsonrpc.ID) bool {
	if !from.lent {
		return false
	}
	err := from.hold.Judge()
	if err != nil {
		h.guard.Refused(observe.ShortOfMemory)
		h.writeShort(w, r, from.session, id, err)
	}
	return err != nil
}

// writeShort refuses a request for want of memory: 429 to who holds too much, 503 when
// nobody else could be served either. s is nil without a session.
func (h *HTTP) writeShort(w http.ResponseWriter, r *http.Request, s *session.Session, id jsonrpc.ID, err error) {
	status, again := http.StatusServiceUnavailable, fullAgain
	if errors.Is(err, budget.ErrShare) {
		status, again = http.StatusTooManyRequests, busyAgain
	}
	line := h.notices.short.Warn().Int64("used", h.opt.Memory.Used()).Int64("limit", h.opt.Memory.Limit())
	if s != nil {
		line = line.Str(logfield.SessionID, logfield.Short(s.ID()))
	}
	line.Msg("short of memory (limits.memory); a request was refused")
	w.Header().Set("Retry-After", again)
	if r.ContentLength < 0 || r.ContentLength > unproven {
		w.Header().Set("Connection", "close") // nobody wants to read the rest
	}
	web.WriteError(w, status, id, jsonrpc.CodeInternal, err.Error())
}
