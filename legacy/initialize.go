package legacy

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// initialize opens a session. A dead session's id doesn't hinder a new one, but
// a live session cannot be initialized twice.
func (h poster) initialize(w http.ResponseWriter, r *http.Request, accept web.Accept, live *session.Session, msg jsonrpc.Message) {
	if live != nil {
		web.WriteMessage(w, accept, jsonrpc.AppendError(nil, msg.ID, fault.Request("session is already initialized")))
		return
	}
	if !h.gate.Enter() {
		h.refusals.refuseStopping(w, msg.ID)
		return
	}
	defer h.gate.Exit()
	caller := h.sessions.Caller(r)
	if !h.sessions.Room(caller.Tenant) { // before anything is asked upstream
		h.refusals.writeFull(w, msg.ID)
		return
	}
	s, err := h.sessions.New(caller, len(msg.Params))
	if err != nil {
		h.admission.writeShort(w, r, nil, msg.ID, err)
		return
	}
	result, err := s.Open(context.WithoutCancel(r.Context()), caller, msg)
	if err != nil {
		h.refusals.writeOpenError(w, r, accept, msg.ID, err)
		return
	}
	switch err := s.List(); {
	case errors.Is(err, sessions.ErrFull):
		h.refusals.writeFull(w, msg.ID)
		return
	case errors.Is(err, session.ErrUnsaved):
		web.WriteUnavailable(w, msg.ID)
		return
	case err != nil:
		h.refusals.refuseStopping(w, msg.ID)
		return
	}
	w.Header()[mcp.HeaderSessionID] = []string{s.ID()}
	web.WriteMessage(w, accept, jsonrpc.AppendResult(nil, msg.ID, result))
}

// modern hands a request of the modern era on unchanged, or refuses it as a
// legacy server would. The error must not be one of the modern era, or a
// dual-era client would not fall back to initialize.
func (h poster) modern(w http.ResponseWriter, r *http.Request, body []byte, msg *jsonrpc.Message, from *sender) {
	next := h.backend.Modern()
	if next == nil {
		web.WriteError(w, http.StatusBadRequest, msg.ID, jsonrpc.CodeInvalidRequest, "no session: initialize first")
		return
	}
	r = r.WithContext(downstream.Charging(r.Context(), from.hold.Account())) // what comes in answer
	if h.Owns(web.Header(r.Header, mcp.HeaderSessionID)) {                   // which is nothing to it, and a credential
		r.Header = maps.Clone(r.Header) // which the connection's requests share
		delete(r.Header, mcp.HeaderSessionID)
	}
	if msg.Method == mcp.MethodListen {
		h.handOnStream(w, r, body, next, msg.ID)
		return
	}
	if h.admission.tooBusy(w, r, from, 1, msg.ID) {
		return
	}
	who := forwarder(h).tenant(r)
	if _, err := h.opt.Turns.Enter(r.Context(), who); err != nil {
		panic(http.ErrAbortHandler) // its client left
	}
	defer h.opt.Turns.Leave(who)
	h.handOnCharged(w, r, body, next, msg.ID)
}
