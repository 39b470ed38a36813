package legacy

import (
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// What a client answers and cancels is its own, wherever it waits. What is about nothing of
// its own, or about nothing any more, is taken from the session's client and counts for
// nothing (C.9). From anybody else it is what every request is that only the session's owner
// may make: 404 (H-6). A 202 would tell who has renewed its token, and cannot be told from
// somebody who knows the session's id, that its person's answer was taken. Nothing that
// others have waiting is looked for: neither what such a request gets nor how long that takes
// says anything of them.

// settleTries bounds how often a request is tried again that met a call which was just then
// left to another replica: its stream is still here, and nobody here knows it any more.
const settleTries = 10

// answer takes the client's response to a server request. It is taken when somebody has it:
// a 202 for one that met nobody would leave its call waiting for ever.
func (rs *replicas) answer(w http.ResponseWriter, r *http.Request, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	var until time.Time // of what no store keeps nobody looks elsewhere
	if s != nil && s.Stored() {
		until = rs.patient()
	}
	err := conv.Answer(caller, *msg)
	if errors.Is(err, downstream.ErrNotHere) && isStrange(s, caller) {
		if !rs.reconsider(w, r, s, &caller) {
			return
		}
		err = conv.Answer(caller, *msg)
	}
	asks := func(c *exchange.FoundCall) bool { return c.Asks(msg.ID) && c.IsOf(conv, caller) }
	for range settleTries {
		if rs.refused(w, r, s, err) {
			return
		}
		if !errors.Is(err, downstream.ErrNotHere) || s == nil || !s.Stored() {
			rs.settle(w, s, caller, err)
			return
		}
		where := rs.seek(w, r, msg.AppendTo(nil), s, caller, downstream.ReplicaOf(msg.ID), until, exchange.Meant{Is: asks})
		switch where {
		case served:
			return
		case unreachable:
			web.WriteUnavailable(w, "")
			return
		case here:
			if err = conv.Answer(caller, *msg); rs.refused(w, r, s, err) {
				return
			}
		case nowhere: // it was answered
		}
		if where == nowhere || !errors.Is(err, downstream.ErrNotHere) || isGone(s, exchange.Meant{Is: asks}) {
			rs.settle(w, s, caller, err)
			return
		}
		s.Pause()
		err = conv.Answer(caller, *msg)
	}
	web.WriteUnavailable(w, "")
}

// isStrange reports whether somebody may know no more of a session than its id. One that was
// opened without credentials, and has not been bound to any, is open to everybody who knows that.
func isStrange(s *session.Session, caller downstream.Caller) bool {
	return s != nil && caller.Unproven && !s.BoundTo("")
}

// reconsider looks whether the session is bound to a stranger's credentials after all, and returns
// false when the request was answered, since nobody knows.
func (rs *replicas) reconsider(w http.ResponseWriter, r *http.Request, s *session.Session, caller *downstream.Caller) bool {
	owner, owns, err := rs.sessions.Reconsider(s, r)
	if err != nil {
		web.WriteUnavailable(w, "")
		return false
	}
	if owns {
		owner.Paid = caller.Paid
		*caller = owner
	}
	return true
}

// settle answers what was taken, or, where err says so, met nothing of the caller's.
func (rs *replicas) settle(w http.ResponseWriter, s *session.Session, caller downstream.Caller, err error) {
	switch {
	case !errors.Is(err, downstream.ErrNotHere):
	case isStrange(s, caller):
		rs.refusals.refuseUnknown(w, s.ID(), "")
		return
	case s != nil:
		rs.notices.answer.Info().Str(logfield.SessionID, logfield.Short(s.ID())).Msg(message.LateAnswer)
	}
	w.WriteHeader(http.StatusAccepted)
}

// notify takes a notification. All but cancellations count for nothing in a session, or for no
// more than any call does.
func (rs *replicas) notify(w http.ResponseWriter, r *http.Request, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	if msg.Method == mcp.NotificationCancelled && s != nil {
		rs.cancel(w, r, s, conv, caller, msg)
		return
	}
	conv.Notify(caller, *msg)
	w.WriteHeader(http.StatusAccepted)
}

// cancel cancels a call wherever it is.
func (rs *replicas) cancel(w http.ResponseWriter, r *http.Request, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
	known := conv.Knows(caller, id)
	if !known && isStrange(s, caller) {
		if !rs.reconsider(w, r, s, &caller) {
			return
		}
		known = conv.Knows(caller, id)
	}
	if !s.Stored() {
		conv.Notify(caller, *msg) // it may come before its call
		rs.conclude(w, s, caller, known)
		return
	}
	var met uint64 // the stream of the one that is meant, once it was found: others need not be readable now
	is := func(c *exchange.FoundCall) bool {
		if !c.Is(id) || !c.IsOf(conv, caller) {
			return false
		}
		met = c.Stream()
		return true
	}
	if areSeveral(s, is) { // it means nobody (B-1)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	until := rs.patient()
	for range settleTries {
		if known {
			conv.Notify(caller, *msg)
			if s.IsLate(id) {
				break
			}
			if still, known := kept(s, exchange.Meant{Is: is}); !still || !known {
				w.WriteHeader(http.StatusAccepted)
				return
			}
		}
		back, told := rs.cancelElsewhere(w, r, s, caller, msg, until, is)
		if told {
			return
		}
		conv.Notify(caller, *msg)
		if isGone(s, exchange.Meant{Stream: met, Is: is}) {
			rs.conclude(w, s, caller, known || back)
			return
		}
		s.Pause()
		known = conv.Knows(caller, id)
	}
	web.WriteUnavailable(w, "") // taken without effect, the call would go on
}

// conclude answers a cancellation that was taken, or met no call of the caller's.
func (rs *replicas) conclude(w http.ResponseWriter, s *session.Session, caller downstream.Caller, met bool) {
	if !met && isStrange(s, caller) {
		rs.refusals.refuseUnknown(w, s.ID(), "")
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// kept reports whether the store has a call still: then another replica has taken over what was settled here,
// and this one has yet to notice. known: the store could be asked.
func kept(s *session.Session, meant exchange.Meant) (still, known bool) {
	is := meant.Is
	meant.Is = func(c *exchange.FoundCall) bool { return c.Waits() && is(c) }
	call, err := exchange.Find(s, meant)
	call.Over()
	return call != nil, err == nil
}

// areSeveral reports whether the store has more than one call that may be meant.
func areSeveral(s *session.Session, meant func(*exchange.FoundCall) bool) bool {
	n := 0
	call, _ := exchange.Find(s, exchange.Meant{Is: func(c *exchange.FoundCall) bool { // a store that cannot be asked is asked again
		if c.Waits() && meant(c) {
			n++
		}
		return n > 1
	}})
	call.Over()
	return n > 1
}

// isGone reports whether the store has a call no more. One that cannot be asked has it, perhaps.
func isGone(s *session.Session, meant exchange.Meant) bool {
	still, known := kept(s, meant)
	return known && !still
}

// cancelElsewhere has whoever has a call cancel it, and reports whether it was met and is here by now, and
// whether the request was answered. A request's id does not tell where it is, so all are asked.
func (rs *replicas) cancelElsewhere(w http.ResponseWriter, r *http.Request, s *session.Session, caller downstream.Caller, msg *jsonrpc.Message, until time.Time, is func(*exchange.FoundCall) bool) (met, told bool) {
	if !s.Settled(until) {
		web.WriteUnavailable(w, "")
		return false, true
	}
	if isForwarded(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return false, true
	}
	body := msg.AppendTo(nil)
	over, known := rs.opt.Peers.ForwardAny(w, r, body)
	if over {
		return false, true
	}
	switch where := rs.seek(w, r, body, s, caller, 0, until, exchange.Meant{Is: is}); {
	case where == served:
		return false, true
	case where == unreachable, where == nowhere && !known: // taken without effect, the call would go on
		web.WriteUnavailable(w, "")
		return false, true
	default:
		return where == here, false
	}
}
