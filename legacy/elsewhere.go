package legacy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
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
	refusals  *refusals
	sessions  *session.Set
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

// Patience is how long an answer or a cancellation waits for a store that cannot say where its call is. One that
// is back is known to be within the first.
const (
	noticed  = time.Second
	patience = 20 * time.Second
)

// patient returns until when what comes now waits for the store, as the settings say.
func (rs *replicas) patient() time.Time {
	return time.Now().Add(max(noticed, min(patience, rs.opt.StoreWait)))
}

// seekTries bounds how often somebody else may be faster in taking a call over.
const seekTries = 4

// seek looks for a call that is not here, from the replica that its id names, or 0. meant
// tells its record. What is in doubt here is nowhere else.
func (rs *replicas) seek(w http.ResponseWriter, r *http.Request, body []byte, s *session.Session, caller downstream.Caller, replica downstream.ReplicaID, until time.Time, meant exchange.Meant) whereabouts {
	if !s.Settled(until) {
		return unreachable
	}
	if isForwarded(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return served
	}
	for range seekTries {
		if replica != rs.opt.Replica && rs.opt.Peers.Forward(w, r, body, replica) {
			return served
		}
		asked := time.Now()
		call, err := find(s, until, meant)
		switch {
		case rs.refused(w, r, s, err):
			return served
		case err != nil:
			s.Report("looking for a call", err)
			return unreachable
		case call == nil && s.Settled(time.Time{}):
			return nowhere
		case call == nil: // its record is just being written
			if !s.Settled(until) {
				return unreachable
			}
			continue
		case call.Waits() && call.Home() != rs.opt.Replica && (call.Home() != replica || rs.cameBack(replica, asked)):
			replica = call.Home() // it was taken over before, or its home is awake again
			call.Over()
			continue
		}
		err = rs.exchanges.TakeOver(s, caller, call)
		call.Over()
		switch {
		case err == nil:
			return here
		case errors.Is(err, downstream.ErrStopping), errors.Is(err, session.ErrLeft): // whoever serves the session next takes it over
			return unreachable
		case !errors.Is(err, downstream.ErrGone):
			s.Report("taking a call over", err)
			return unreachable
		}
	}
	return unreachable
}

// cameBack reports that a replica which had nothing when it was asked, a while ago, lives by now: it was paused perhaps, has the call,
// and has looked already which of its calls others have taken over. Its client would wait with it for what is here.
func (rs *replicas) cameBack(replica downstream.ReplicaID, asked time.Time) bool {
	return time.Since(asked) > noticed && slices.Contains(rs.opt.Peers.Others(), replica)
}

// refused answers a request whose answer cannot be kept, or whose call cannot be brought back, for want of memory or of
// room in the store, and was not taken: the question stays open.
func (rs *replicas) refused(w http.ResponseWriter, r *http.Request, s *session.Session, err error) bool {
	switch {
	case budget.Short(err):
		rs.admission.guard.Refused(observe.ShortOfMemory)
		rs.admission.writeShort(w, r, s, "", err)
	case errors.Is(err, budget.ErrNoRoom):
		s.Report("keeping an answer beside an open question", err)
		w.Header().Set("Retry-After", fullAgain)
		web.WriteError(w, http.StatusServiceUnavailable, "", jsonrpc.CodeInternal, err.Error())
	default:
		return false
	}
	return true
}

// find is exchange.Find that waits for the store, for a turn, and for memory, but not for that of who holds too much.
func find(s *session.Session, until time.Time, meant exchange.Meant) (call *exchange.FoundCall, err error) {
	for {
		call, err = exchange.Find(s, meant)
		if err == nil || errors.Is(err, budget.ErrShare) || !time.Now().Before(until) || !s.Pause() {
			return call, err
		}
	}
}

// findStream looks for the stream that a GET resumes, and returns false when the request
// was answered.
func (rs *replicas) findStream(w http.ResponseWriter, r *http.Request, s *session.Session, caller downstream.Caller, id stream.EventID) bool {
	st := s.Streams().FindFor(&caller, id.Stream)
	held := st != nil && st.Holds(id.Seq)
	if !s.Stored() || held && !(rs.blind && s.Shared()) {
		return true
	}
	if st == nil && rs.exchanges.Tell(w, s, caller, id) {
		return false
	}
	is := exchange.Meant{Stream: id.Stream, Is: func(c *exchange.FoundCall) bool { return c.IsFor(s.Conversation(), caller) }}
	if st != nil { // another replica has gone on while this one slept, or there is no such event
		call, err := exchange.Find(s, is)
		call.Over() // what is asked of it next was read
		switch {
		case err != nil && held: // as far as this one knows
			return true
		case rs.refused(w, r, s, err):
			return false
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
	switch rs.seek(w, r, nil, s, caller, stream.Number(id.Stream).Replica(), time.Now().Add(noticed), is) {
	case served:
		return false
	case unreachable:
		web.WriteUnavailable(w, "")
		return false
	}
	return true
}
