package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// admission decides which requests are taken at all: by how fast they come, how many are
// under way, and how much memory their clients hold. What it counts is counted
// in the rooms that it asks.
type admission struct {
	opt      *Options
	guard    web.Guard
	notices  *notices
	gate     *gate.Gate
	sessions *session.Set
	// of streams that are handed on here and never end by themselves
	streaming *budget.Places
}

// busyAgain is when a client that has too much under way may try again, in seconds.
const busyAgain = "1"

// tooBusy answers requests that are not to be executed: of a session, a principal or an
// address that has as many under way as there may be, or of a client that left while they
// were queued before us. The latter is only looked at when there is a crowd, since only
// then anything queues.
func (a *admission) tooBusy(w http.ResponseWriter, r *http.Request, from *sender, requests int, id jsonrpc.ID) bool {
	s := from.session
	switch {
	case a.gate.Count() > stream.Crowd && quiet.Departed(r):
		panic(http.ErrAbortHandler)
	case s != nil && s.Calls(false)+requests > a.inFlight(r), from.visits != nil && from.visits.Calls(true)+requests > a.inFlight(r):
		a.refuseBusy(w, s, id, "limits.in-flight", "too many requests are under way in this session")
		return true
	}
	return a.tooMany(w, r, from, requests, id)
}

// inFlight returns how many requests may be under way in a session of the client.
func (a *admission) inFlight(r *http.Request) int {
	if a.opt.TierClaim == "" && a.opt.TierHeader == "" {
		return a.opt.MaxInFlight
	}
	return max(1, int(float64(a.opt.MaxInFlight)*a.opt.Rates.FactorOf(a.tierOf(r))))
}

// tooMany refuses requests of a principal or from an address that has too many under
// way, or notes them in from.
func (a *admission) tooMany(w http.ResponseWriter, r *http.Request, from *sender, requests int, id jsonrpc.ID) bool {
	if a.opt.Rates == nil {
		return false
	}
	leave, ok := a.opt.Rates.Enter(a.senderOf(r), requests)
	if !ok {
		a.refuseBusy(w, from.session, id, "limits.in-flight-principal, limits.in-flight-address", tooManyText)
		return true
	}
	from.place = leave
	return false
}

// tooManyStreams answers a request for a stream that the server is not to be asked for, or
// returns what gives its place back.
func (a *admission) tooManyStreams(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) (leave func(), refused bool) {
	leave = a.stream(r)
	if leave == nil {
		a.refuseBusy(w, nil, id, "limits.sessions", tooManyStreamsText)
	}
	return leave, leave == nil
}

// tooManyAnswers is tooManyStreams for a request that has no turn, or none any more, and whose
// answer may take any time.
func (a *admission) tooManyAnswers(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) (leave func(), refused bool) {
	leave = a.endless(a.sessions.Tenant(r))
	if leave == nil {
		a.refuseBusy(w, nil, id, "ulimit -n", tooManyText)
	}
	return leave, leave == nil
}

// stream takes a place for what never ends by itself; nil: there is none.
func (a *admission) stream(r *http.Request) (leave func()) {
	tenant := a.sessions.Tenant(r)
	here, _ := a.streaming.Take(tenant)
	if here == nil {
		return nil
	}
	everywhere := a.endless(tenant)
	if everywhere == nil {
		here()
		return nil
	}
	return func() { everywhere(); here() }
}

// endless takes a place for what is at the server without a turn; nil: there is none.
func (a *admission) endless(tenant string) (leave func()) {
	if a.opt.Endless == nil {
		return func() {}
	}
	leave, _ = a.opt.Endless.Take(tenant)
	return leave
}

// streams is places for what never ends by itself.
func (a *admission) streams(r *http.Request) func() (leave func(), err *jsonrpc.Error) {
	return func() (func(), *jsonrpc.Error) {
		leave := a.stream(r)
		if leave == nil {
			a.noteBusy(nil, "limits.sessions")
			return nil, fault.Internal(tooManyStreamsText)
		}
		return leave, nil
	}
}

const tooManyStreamsText = "too many streams are open with these credentials or from this address"

const tooManyText = "too many requests are under way with these credentials or from this address"

func (a *admission) refuseBusy(w http.ResponseWriter, s *session.Session, id jsonrpc.ID, setting, text string) {
	a.guard.Refused(observe.InFlight)
	a.noteBusy(s, setting)
	w.Header().Set("Retry-After", busyAgain)
	web.WriteError(w, http.StatusTooManyRequests, id, jsonrpc.CodeInternal, text)
}

func (a *admission) noteBusy(s *session.Session, setting string) {
	line := a.notices.busy.Warn().Str("setting", setting)
	if s != nil {
		line = line.Str(logfield.SessionID, logfield.Short(s.ID()))
	}
	line.Msg("too many requests are under way; refused one")
}

// places returns what counts the requests of a connection in, or says why not; nil: they
// are not counted.
func (a *admission) places(r *http.Request) func() (leave func(), err *jsonrpc.Error) {
	if a.opt.Rates == nil {
		return nil
	}
	return func() (func(), *jsonrpc.Error) {
		leave, ok := a.opt.Rates.Enter(a.senderOf(r), 1)
		if !ok {
			a.noteBusy(nil, "limits.in-flight-principal, limits.in-flight-address")
			return nil, fault.Internal(tooManyText)
		}
		return leave, nil
	}
}
