package mount

import (
	"context"
	"errors"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// entrusted is a request that the bridge serves while nobody knows what the server is. It
// keeps what the request is served with, so that the server can answer in the end.
type entrusted struct {
	downstream.Reply
	session *undecided
	ctx     context.Context // for its values only
	caller  downstream.Caller
	req     downstream.Request
}

// isOf reports whether it is the request that the caller gave this id.
func (e *entrusted) isOf(caller downstream.Caller, id jsonrpc.ID) bool {
	return e.req.ID == id && caller.Owns(e.caller.Principal)
}

// Finish implements downstream.Reply. The bridge has no answer for the client of a
// legacy server: that has.
func (e *entrusted) Finish(msg downstream.Message) {
	if !e.session.takeBack(e) {
		e.Reply.Finish(msg)
	}
}

// Refuse implements downstream.Reply.
func (e *entrusted) Refuse(r *downstream.Refusal) bool {
	if e.session.takeBack(e) {
		return true
	}
	return e.Reply.Refuse(r)
}

// Abandon implements downstream.Reply.
func (e *entrusted) Abandon() {
	e.session.release(e)
	e.Reply.Abandon()
}

// takeBack has the server serve a request that the bridge could not. It reports false
// when the bridge's answer is the one.
func (u *undecided) takeBack(e *entrusted) bool {
	u.mu.Lock()
	delete(u.asked, e.req.ID)
	next, taken := u.next.Load(), u.era == legacyEra && u.closed == nil
	if taken && next == nil {
		u.held = append(u.held, e)
	}
	u.mu.Unlock()
	if taken && next != nil {
		(*next).Serve(e.ctx, e.caller, e.req, e.Reply)
		u.work.Go(u.retire) // not here: this is a call of what it closes
	}
	return taken
}

// release forgets a request that ended without an answer.
func (u *undecided) release(e *entrusted) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asked[e.req.ID] == e {
		delete(u.asked, e.req.ID)
	}
}

// asError words an error for a client.
func asError(err error) *jsonrpc.Error {
	if own, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return own
	}
	return fault.Internal(err.Error(), fault.Reason("relay"))
}
