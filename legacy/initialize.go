package legacy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// initialize opens a session. A dead session's id doesn't hinder a new one, but
// a live session cannot be initialized twice.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, accept web.Accept, live *session, msg jsonrpc.Message) {
	if live != nil {
		web.WriteMessage(w, accept, jsonrpc.AppendError(nil, msg.ID, fault.Request("session is already initialized")))
		return
	}
	if !h.gate.Enter() {
		web.WriteShuttingDown(w, msg.ID)
		return
	}
	defer h.gate.Exit()
	if !h.table.Room() { // before anything is asked upstream
		h.writeFull(w, msg.ID)
		return
	}
	caller := h.caller(r)
	s := &session{http: h, auth: caller.Authorization, born: time.Now()}
	var err error
	if s.account, err = h.opt.openAccount(caller.Principal, len(msg.Params)+len(caller.Authorization)); err != nil {
		h.writeShort(w, r, nil, msg.ID, err)
		return
	}
	caller.Account = s.account
	s.streams.Init(h.streams, &s.rec, s.account, h.keeper.number())
	conv, result, err := h.backend.Open(context.WithoutCancel(r.Context()), caller, msg, s.pusher())
	if err != nil {
		s.account.Close()
		h.writeOpenError(w, r, accept, msg.ID, err)
		return
	}
	s.conv = conv
	s.rec = sessions.Record{ID: sessions.NewID(), Version: conv.Version(), Principal: caller.Principal}
	if h.keeper != nil { // before the client learns of it
		s.kept = new(kept)
		h.keeper.save(s)
	}
	switch err := s.enlist(); {
	case errors.Is(err, sessions.ErrFull):
		h.writeFull(w, msg.ID)
		return
	case err != nil:
		web.WriteShuttingDown(w, msg.ID)
		return
	}
	if h.keeper != nil {
		h.keeper.watch(s)
	}
	w.Header()[mcp.HeaderSessionID] = []string{s.rec.ID}
	web.WriteMessage(w, accept, jsonrpc.AppendResult(nil, msg.ID, result))
}

// recentUse is how long after its last use a session is not evicted.
const recentUse = time.Minute

// fullAgain is when a client that was refused may try again, in seconds.
const fullAgain = "10"

// writeFull refuses a client because all sessions there may be are in use.
func (h *HTTP) writeFull(w http.ResponseWriter, id jsonrpc.ID) {
	h.notices.full.Warn().Int("limit", h.opt.MaxSessions).Msg("no place for another session (limits.sessions): all are in use; a client was refused")
	w.Header().Set("Retry-After", fullAgain)
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
