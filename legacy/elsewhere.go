package legacy

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// Any request of a session may reach any replica. Most can be served by each; an answer,
// a cancellation and the way back to a stream belong to the replica that has the call:
//
//	here? ──no──▶ forward to the replica that the id names ──it has it──▶ served
//	                     │ gone, or it doesn't
//	                     ▼
//	            ask the store whose it is ──of one that lives──▶ forward there
//	                     │ nobody's
//	                     ▼
//	            take it over, exactly one replica ──▶ here
//
// A request that another replica has forwarded is never forwarded again: what it is
// about is here, or the answer is 421.

// replicas serves what belongs to another replica, or takes it over.
type replicas struct {
	opt       *Options
	admission *admission
	gate      *gate.Gate
	exchanges *exchange.Endpoint
	notices   *notices
	blind     bool // others cannot be asked, nor they this one: without a lease anybody may take anything over at any time
}

// handOn has another replica serve a request while this one stops, and reports whether
// there is one.
func (rs *replicas) handOn(w http.ResponseWriter, r *http.Request) bool {
	why := r.Context().Value(passedKey{})
	switch {
	case !rs.gate.IsShut() || why == forwarded:
		return false
	case why == handedOn: // this one stops, too: there may be another
		w.WriteHeader(http.StatusMisdirectedRequest)
		return true
	}
	if rs.opt.Peers.Alone(r.Context()) || r.ContentLength > rs.opt.MaxBody {
		return false
	}
	from := sender{hold: budget.On(rs.admission.accountOf(nil, r))}
	defer from.release()
	body, ok := rs.admission.body(w, r, &from)
	if !ok {
		return true
	}
	if rs.opt.Peers.HandOnAny(w, r, body) {
		return true
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return false
}

// leaves answers a request that came in time and cannot be served any more, since this
// replica stops: another one does, or whoever passed it on is told to look elsewhere. It
// reports whether the request was answered.
func (rs *replicas) leaves(w http.ResponseWriter, r *http.Request, body []byte) bool {
	switch {
	case !rs.gate.IsShut():
		return false
	case r.Context().Value(passedKey{}) != nil:
		w.WriteHeader(http.StatusMisdirectedRequest)
		return true
	}
	return rs.opt.Peers.HandOnAny(w, r, body)
}

// whereabouts is what came of looking for what a request is about.
type whereabouts uint8

const (
	nowhere     whereabouts = iota // there is no such thing
	here                           // it is, by now
	served                         // another replica has it, and the request was served
	unreachable                    // it can't be said now
)

// seekTries bounds how often somebody else may be faster in taking a call over.
const seekTries = 4

// seek looks for a call that is not here, from the replica that its id names, or 0. meant
// tells its record.
func (rs *replicas) seek(w http.ResponseWriter, r *http.Request, body []byte, s *session.Session, caller downstream.Caller, replica downstream.ReplicaID, meant func(*exchange.FoundCall) bool) whereabouts {
	if isForwarded(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return served
	}
	for range seekTries {
		if replica != rs.opt.Replica && rs.opt.Peers.Forward(w, r, body, replica) {
			return served
		}
		call, err := exchange.Find(s, meant)
		switch {
		case err != nil:
			s.Report("looking for a call", err)
			return unreachable
		case call == nil:
			return nowhere
		case call.Waits() && call.Home() != replica && call.Home() != rs.opt.Replica:
			replica = call.Home() // it was taken over before
			continue
		}
		err = rs.exchanges.TakeOver(s, caller, call)
		switch {
		case err == nil:
			return here
		case !errors.Is(err, downstream.ErrGone):
			s.Report("taking a call over", err)
			return unreachable
		}
	}
	return unreachable
}

// findStream looks for the stream that a GET resumes, and returns false when the request
// was answered.
func (rs *replicas) findStream(w http.ResponseWriter, r *http.Request, s *session.Session, caller downstream.Caller, id stream.EventID) bool {
	st := s.Streams().Find(id.Stream)
	held := st != nil && st.Holds(id.Seq)
	if !s.Stored() || held && !(rs.blind && s.Shared()) {
		return true
	}
	if st == nil && rs.exchanges.Tell(w, s, id) {
		return false
	}
	is := func(c *exchange.FoundCall) bool { return c.Speaks(id.Stream) }
	if st != nil { // another replica has gone on while this one slept, or there is no such event
		call, err := exchange.Find(s, is)
		switch {
		case err != nil && held: // as far as this one knows
			return true
		case err != nil:
			s.Report("looking for a call", err)
			web.WriteUnavailable(w, "")
			return false
		case call == nil || call.Home() == rs.opt.Replica, held && !call.Waits() && st.Look().Ended:
			return true
		}
		s.Conversation().Renew() // the call learns of it, too
		s.Streams().Forget(st)
	}
	switch rs.seek(w, r, nil, s, caller, stream.Number(id.Stream).Replica(), is) {
	case served:
		return false
	case unreachable:
		web.WriteUnavailable(w, "")
		return false
	}
	return true
}

// settleTries bounds how often a request is tried again that met a call which was just then
// left to another replica: its stream is still here, and nobody here knows it any more.
const settleTries = 10

// answer takes the client's response to a server request. It is taken when somebody has it:
// a 202 for one that met nobody would leave its call waiting for ever.
func (rs *replicas) answer(w http.ResponseWriter, r *http.Request, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	asks := func(c *exchange.FoundCall) bool { return c.Asks(msg.ID) }
	for range settleTries {
		err := conv.Answer(caller, *msg)
		if rs.refused(w, r, s, err) {
			return
		}
		if !errors.Is(err, downstream.ErrNotHere) || s == nil || !s.Stored() {
			rs.noteLate(s, err)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		switch rs.seek(w, r, msg.AppendTo(nil), s, caller, downstream.ReplicaOf(msg.ID), asks) {
		case served:
			return
		case unreachable:
			web.WriteUnavailable(w, "")
			return
		case here:
			if err = conv.Answer(caller, *msg); rs.refused(w, r, s, err) {
				return
			}
		case nowhere:
			rs.noteLate(s, err)
			err = nil // it was answered
		}
		if !errors.Is(err, downstream.ErrNotHere) || !isKept(s, asks) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		s.Pause()
	}
	web.WriteUnavailable(w, "")
}

// refused answers a request whose answer cannot be kept for want of memory, and was not taken: the
// question stays open.
func (rs *replicas) refused(w http.ResponseWriter, r *http.Request, s *session.Session, err error) bool {
	if !budget.Short(err) {
		return false
	}
	rs.admission.guard.Refused(observe.ShortOfMemory)
	rs.admission.writeShort(w, r, s, "", err)
	return true
}

// noteLate tells the log of an answer to nothing, or no longer to anything.
func (rs *replicas) noteLate(s *session.Session, err error) {
	if errors.Is(err, downstream.ErrNotHere) && s != nil {
		rs.notices.answer.Info().Str(logfield.SessionID, logfield.Short(s.ID())).Msg(message.LateAnswer)
	}
}

// notify takes a notification.
func (rs *replicas) notify(w http.ResponseWriter, r *http.Request, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	if msg.Method == mcp.NotificationCancelled && s != nil && s.Stored() {
		rs.cancel(w, r, s, conv, caller, msg)
		return
	}
	conv.Notify(caller, *msg)
	w.WriteHeader(http.StatusAccepted)
}

// cancel cancels a call wherever it is.
func (rs *replicas) cancel(w http.ResponseWriter, r *http.Request, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
	is := func(c *exchange.FoundCall) bool { return c.Is(id) }
	for range settleTries {
		if conv.Knows(id) {
			conv.Notify(caller, *msg)
			if s.IsLate(id) {
				break
			}
			if !isKept(s, is) {
				w.WriteHeader(http.StatusAccepted)
				return
			}
		}
		if rs.cancelElsewhere(w, r, s, caller, msg, is) {
			return
		}
		conv.Notify(caller, *msg)
		if !isKept(s, is) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		s.Pause()
	}
	web.WriteUnavailable(w, "") // taken without effect, the call would go on
}

// isKept reports whether the store has a call still: then another replica has taken over
// what was settled here, and this one has yet to notice.
func isKept(s *session.Session, meant func(*exchange.FoundCall) bool) bool {
	call, err := exchange.Find(s, func(c *exchange.FoundCall) bool { return c.Waits() && meant(c) })
	return err == nil && call != nil
}

// cancelElsewhere has whoever has a call cancel it, and reports whether the request was
// answered. A request's id does not tell where it is, so all are asked.
func (rs *replicas) cancelElsewhere(w http.ResponseWriter, r *http.Request, s *session.Session, caller downstream.Caller, msg *jsonrpc.Message, is func(*exchange.FoundCall) bool) bool {
	if isForwarded(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return true
	}
	body := msg.AppendTo(nil)
	over, known := rs.opt.Peers.ForwardAny(w, r, body)
	if over {
		return true
	}
	switch where := rs.seek(w, r, body, s, caller, 0, is); {
	case where == served:
		return true
	case where == unreachable, where == nowhere && !known: // taken without effect, the call would go on
		web.WriteUnavailable(w, "")
		return true
	}
	return false
}
