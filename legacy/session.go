package legacy

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// session is a client of the Streamable HTTP transport between initialize and
// its end.
type session struct {
	http *HTTP
	rec  sessions.Record
	born time.Time
	auth string // the Authorization that opened it
	conv downstream.Conversation

	account *budget.Account // what it holds; closed with it

	kept *kept // nil: not in a store

	rebound atomic.Pointer[binding] // when it is bound to newer credentials

	active    atomic.Int32 // exchanges under way
	calls     atomic.Int32 // requests of those exchanges
	listed    atomic.Bool  // in the table, or no longer
	ended     atomic.Bool  // by the conversation's other side
	challenge atomic.Pointer[challenge]

	streams stream.Set
}

// naming is what became of the session that a request names.
type naming uint8

const (
	nameless    naming = iota // it names none
	known                     // it was found
	unknown                   // there is none, for whom the request acts for
	unavailable               // it may be in the store, and can't be had now
)

// find returns the live session that a request names and who it acts for. To another
// principal the session doesn't exist (H-8).
func (h *HTTP) find(r *http.Request) (s *session, caller downstream.Caller, named naming) {
	id := web.Header(r.Header, mcp.HeaderSessionID)
	if id == "" {
		return nil, downstream.Caller{}, nameless
	}
	s, err := h.lookup(r, id)
	if err != nil {
		return nil, downstream.Caller{}, unavailable
	}
	if s == nil {
		return nil, downstream.Caller{}, unknown
	}
	caller, ok := h.callerOf(s, r)
	if !ok {
		return nil, downstream.Caller{}, unknown
	}
	return s, caller, known
}

// lookup finds a session by its id, in the store, too. It returns nil when there is
// none, and an error when it may be in the store but cannot be had now.
func (h *HTTP) lookup(r *http.Request, id string) (*session, error) {
	s, ok := h.table.Get(id)
	switch {
	case !ok && h.keeper != nil:
		return h.keeper.restore(r, id)
	case ok && s.kept != nil && s.kept.stale.Load():
		h.keeper.refresh(s)
		if s.ended.Load() {
			return nil, nil
		}
	}
	return s, nil
}

func (s *session) busy() bool { return s.active.Load() > 0 || s.streams.Listening() }

// streamsOf returns the streams of a session, nil without one.
func streamsOf(s *session) *stream.Set {
	if s == nil {
		return nil
	}
	return &s.streams
}

// Push implements Pusher (C.3).
func (s *session) Push(key string, msg downstream.Message) { s.streams.Push(key, message.TextOf(&msg)) }

// pusher returns the session's channel for unrelated messages, nil when there is none.
func (s *session) pusher() downstream.Pusher {
	if s.http.opt.NoGET {
		return nil
	}
	return s
}

// enlist puts the session into the table. The error is the table's; the conversation is
// closed then.
func (s *session) enlist() error {
	err := s.http.table.Add(s.rec.ID, s)
	if err != nil {
		s.account.Close()
	}
	switch {
	case errors.Is(err, sessions.ErrFull):
		s.conv.Close(sessions.Evicted)
		return err
	case err != nil:
		s.conv.Close(sessions.Closed)
		return err
	}
	s.listed.Store(true)
	if s.ended.Load() {
		s.End(nil)
	}
	return nil
}

// End implements Pusher: what the session stood for is gone. It may come before the
// session is in the table, which then takes it out at once.
func (s *session) End(error) {
	s.ended.Store(true)
	if s.listed.Load() {
		s.http.table.Remove(s.rec.ID)
	}
}

// end closes the session after it left the table. The conversation ends every call
// with a last word where the client is to have one, now or a moment later: the stream
// of a call therefore ends with its exchange, and only the others end here.
func (s *session) end(cause sessions.Cause) {
	line := s.http.opt.Logger.Debug()
	if cause == sessions.Evicted {
		line = s.http.notices.evicted.Warn().Int("limit", s.http.opt.MaxSessions)
	}
	line.Str(logfield.SessionID, logfield.Short(s.rec.ID)).Str(logfield.Cause, cause.Error()).Msg("session ended")
	if s.kept != nil {
		s.http.keeper.ended(s, cause)
	}
	s.conv.Close(cause)
	if watch := s.http.opt.Watch; watch != nil {
		watch.SessionEnded(observe.Session{
			Version: s.rec.Version, Transport: observe.StreamableHTTP, Reason: message.ReasonOf(cause), Took: time.Since(s.born),
		})
	}
	s.streams.Close()
	s.account.Close()
}

// challenge is the upstream's refusal of credentials that came too late for the
// exchange that carried them.
type challenge struct {
	refusal *downstream.Refusal
	auth    string // which were refused
}

// refuse relays a late challenge to a request with the credentials that were refused
// (H-4). It is only asked for what the client can do again without loss: neither an
// answer nor a notification, nor the way back to the stream of a call.
func (s *session) refuse(w http.ResponseWriter, r *http.Request, auth string) bool {
	c := s.challenge.Load()
	if c == nil || c.auth != auth || !s.challenge.CompareAndSwap(c, nil) {
		return false
	}
	s.http.writeRefusal(w, r, c.refusal)
	return true
}
