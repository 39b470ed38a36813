package legacy

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// initialize opens a session. A dead session's id doesn't hinder a new one, but
// a live session cannot be initialized twice.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, accept web.Accept, live *session.Session, msg jsonrpc.Message) {
	if live != nil {
		web.WriteMessage(w, accept, jsonrpc.AppendError(nil, msg.ID, fault.Request("session is already initialized")))
		return
	}
	if !h.gate.Enter() {
		web.WriteShuttingDown(w, msg.ID)
		return
	}
	defer h.gate.Exit()
	if !h.sessions.Room() { // before anything is asked upstream
		h.writeFull(w, msg.ID)
		return
	}
	caller := h.sessions.Caller(r)
	s, err := h.sessions.New(caller, len(msg.Params))
	if err != nil {
		h.writeShort(w, r, nil, msg.ID, err)
		return
	}
	result, err := s.Open(context.WithoutCancel(r.Context()), caller, msg)
	if err != nil {
		h.writeOpenError(w, r, accept, msg.ID, err)
		return
	}
	switch err := s.List(); {
	case errors.Is(err, sessions.ErrFull):
		h.writeFull(w, msg.ID)
		return
	case errors.Is(err, session.ErrUnkept):
		web.WriteUnavailable(w, msg.ID)
		return
	case err != nil:
		web.WriteShuttingDown(w, msg.ID)
		return
	}
	w.Header()[mcp.HeaderSessionID] = []string{s.ID()}
	web.WriteMessage(w, accept, jsonrpc.AppendResult(nil, msg.ID, result))
}

// writeFull refuses a client because all sessions there may be are in use.
func (h *HTTP) writeFull(w http.ResponseWriter, id jsonrpc.ID) {
	h.notices.full.Warn().Int("limit", h.opt.MaxSessions).Msg("no place for another session (limits.sessions): all are in use; a client was refused")
	w.Header().Set("Retry-After", fullAgain)
	h.guard.Refused(observe.TooMany)
	web.WriteError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternal, "too many sessions; try again later")
}

// writeOpenError answers a failed initialize with status 200, or with the
// upstream's 401 or 403: clients take 400, 404 and 405 for a server of
// the HTTP+SSE era.
func (h *HTTP) writeOpenError(w http.ResponseWriter, r *http.Request, accept web.Accept, id jsonrpc.ID, err error) {
	var refusal *downstream.Refusal
	if errors.As(err, &refusal) {
		h.writeRefusal(w, r, refusal)
		return
	}
	web.WriteMessage(w, accept, jsonrpc.AppendError(nil, id, message.AsError(err)))
}
