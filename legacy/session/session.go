package session

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// Session is a client of the Streamable HTTP transport between initialize and
// its end.
//
//	New ──▶ Open ──▶ List ──▶ live: requests find it ──▶ end, once
//	           └──────┴─────────── an error ──────────────▶ no session
//
// Its conversation ends it by End, its client by DELETE, the table when it expired or had to
// make room; a replica of the bridge may have ended it in the store.
type Session struct {
	set  *Set
	rec  sessions.Record
	born time.Duration // since Set.start
	auth string        // the Authorization that opened it

	share string      // whose share it takes until its principal is vouched for
	own   atomic.Bool // what it holds is its principal's
	conv  downstream.Conversation

	account *budget.Account // what it holds; closed with it

	stored  *stored                 // nil: not in a store
	rebound atomic.Pointer[binding] // when it is bound to other credentials than those that opened it, or came back so
	doubted atomic.Pointer[doubt]   // the last ones that it was not bound to

	active    atomic.Int32 // requests, exchanges and hosted tasks under way
	calls     atomic.Int32 // requests of those exchanges, of who it is bound to
	unproven  atomic.Int32 // requests of others in it
	listed    atomic.Bool  // in the table, or no longer
	left      atomic.Bool  // the table for the store; who has it by then may go on with it
	ended     atomic.Bool  // by the conversation's other side
	challenge atomic.Pointer[challenge]

	streams stream.Set
}

// Open has the backend open the session, and returns the result of initialize. After an
// error, which is the backend's, there is no session.
func (s *Session) Open(ctx context.Context, caller downstream.Caller, initialize jsonrpc.Message) ([]byte, error) {
	caller.Account, caller.Tenant, caller.Authorization = s.account, s.share, s.auth
	conv, result, err := s.set.opt.Backend.Open(ctx, caller, initialize, s)
	if err != nil {
		s.account.Close()
		return nil, err
	}
	s.conv = conv
	s.rec = sessions.Record{ID: s.set.ids.fresh(), Version: conv.Version(), Principal: caller.Principal}
	return result, nil
}

// ErrUnsaved is the error of a session that could not be kept, and that other replicas
// therefore would not know.
var ErrUnsaved = errors.New("the session cannot be kept")

// List keeps the session, where sessions are kept, and lets requests find it from now on. After an
// error, which is that of sessions.Table or ErrUnsaved, there is no session.
func (s *Session) List() error {
	keeper := s.set.keeper
	if keeper != nil { // before the client learns of it
		s.stored = &stored{kept: s.set.opt.Room.Empty()}
		if !keeper.save(s) && keeper.shared {
			s.stored.kept.Release()
			s.account.Close()
			s.conv.Close(sessions.Closed)
			return ErrUnsaved
		}
	}
	if err := s.enlist(); err != nil {
		return err
	}
	if keeper != nil {
		keeper.watch(s)
	}
	return nil
}

// owner returns the binding that counts.
func (s *Session) owner() binding {
	if b := s.rebound.Load(); b != nil {
		return *b
	}
	return binding{auth: s.auth, principal: s.rec.Principal, n: 1}
}

// BoundTo reports whether the session is bound to these credentials by now.
func (s *Session) BoundTo(auth string) bool { return s.owner().by(auth) }

// tenant returns whose share a request of the session takes, and has what the session holds
// counted there, too, from when its principal is vouched for.
func (s *Session) tenant(principal, auth string) string {
	if principal == "" || !s.set.vouched(auth) {
		return s.share
	}
	if !s.own.Swap(true) {
		s.account.Move(principal)
		s.set.table.Move(s.rec.ID, principal)
	}
	return principal
}

// ID returns the session's id, which is a credential.
func (s *Session) ID() string { return s.rec.ID }

func (s *Session) began() time.Time { return s.set.start.Add(s.born) }

// Version returns the version that was negotiated.
func (s *Session) Version() mcp.Version { return s.rec.Version }

// Conversation returns who answers the session's requests.
func (s *Session) Conversation() downstream.Conversation { return s.conv }

// Account returns what the session holds.
func (s *Session) Account() *budget.Account { return s.account }

// Payer returns in whose share of that the session is counted. One that the clock has brought back is in nobody's share of memory; in the
// store it stays in that in which it was.
func (s *Session) Payer() string { return cmp.Or(s.account.Owner(), s.stored.payer) }

// Stored reports whether the session, and its calls that wait, are in a store.
func (s *Session) Stored() bool { return s.stored != nil }

// Ended reports whether the session only lasts until what is under way in it has ended.
func (s *Session) Ended() bool { return s.ended.Load() }

// Busy reports whether something is under way in the session, or its client listens.
func (s *Session) Busy() bool { return s.active.Load() > 0 || s.streams.Listening() }

// keepsResponse reports whether a response is kept that the client has not fetched: the session lasts as long as that.
func (s *Session) keepsResponse() bool { return s.streams.Owing() }

// Owes reports whether the client can be expected to come for the end of a call, which is nowhere but here, or an
// answer that counts for nothing is yet to be taken back from the store: the next process would use it.
func (s *Session) Owes() bool { return s.streams.Owes() || s.stored.doubtful() }

// Streams returns the session's streams, nil without a session.
func (s *Session) Streams() *stream.Set {
	if s == nil {
		return nil
	}
	return &s.streams
}

func (s *Session) look() observe.Sight {
	return observe.Sight{
		ID: logfield.Short(s.rec.ID), Transport: observe.StreamableHTTP, Began: s.began(), Conversation: s.conv.Look(), Streams: s.streams.Look(),
	}
}

// Push implements Pusher (C.3).
func (s *Session) Push(key string, msg downstream.Message) { s.streams.Push(key, message.TextOf(&msg)) }

// Reaches implements Pusher.
func (s *Session) Reaches() bool { return !s.set.opt.NoPush }

// enlist puts the session into the table, where one of somebody who has many does not get
// the last places, nor those of others. The error is the table's; the conversation is closed then.
func (s *Session) enlist() error {
	err := s.set.table.Add(s.share, s.rec.ID, s)
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
		s.leave(sessions.Removed)
	}
	return nil
}

// End implements Pusher: what the session stood for is gone. Nothing begins in it any more,
// and it lasts until what is under way has ended. It may come before the session is in the
// table, which then takes it out at once.
func (s *Session) End(error) {
	s.ended.Store(true)
	if s.active.Load() == 0 {
		s.leave(sessions.Removed)
		return
	}
	s.conv.Conclude()
}

// leave takes the session out of the table. It is idempotent.
func (s *Session) leave(why sessions.Cause) {
	if s.stored != nil && s.stored.deleted.Load() {
		why = sessions.Removed
	}
	if s.listed.Load() && !s.left.Load() {
		s.set.table.End(s.rec.ID, why)
	}
}

// end closes the session after it left the table. The conversation ends every call
// with a last word where the client is to have one, now or a moment later: the stream
// of a call therefore ends with its exchange, and only the others end here.
func (s *Session) end(cause sessions.Cause) {
	if s.stored != nil {
		cause = s.set.keeper.causeOf(s, cause)
	}
	line := logfield.Each(s.set.opt.Logger.Debug())
	if cause == sessions.Evicted {
		line = s.set.opt.Evicted.Warn().Int("limit", s.set.opt.MaxSessions)
	}
	line.Str(logfield.SessionID, logfield.Short(s.rec.ID)).Str(logfield.Cause, cause.Error()).Msg("session ended")
	if s.stored != nil {
		s.set.keeper.ended(s, cause)
	}
	s.set.ids.passed(s.rec.ID)
	s.conv.Close(cause)
	if watch := s.set.opt.Watch; watch != nil && cause != sessions.Rested {
		watch.SessionEnded(observe.Session{
			Version: s.rec.Version, Transport: observe.StreamableHTTP, Reason: message.ReasonOf(cause), Took: time.Since(s.began()),
		})
	}
	s.streams.Close()
	s.account.Close()
}

// Challenge keeps a refusal of these credentials for the client's next request.
func (s *Session) Challenge(refusal *downstream.Refusal, auth string) {
	s.set.opt.Late.Info().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Int("status", refusal.Status).
		Msg("the server refused a client's credentials after the response had begun; the session's next request with them is told")
	s.challenge.Store(&challenge{refusal, strings.Clone(auth)})
}

// Challenged returns a late challenge for a request with the credentials that were refused,
// once (H-4); nil: there is none. It is only asked for what the client can do again without
// loss: neither an answer nor a notification, nor the way back to the stream of a call.
func (s *Session) Challenged(auth string) *downstream.Refusal {
	c := s.challenge.Load()
	if c == nil || c.auth != auth || !s.challenge.CompareAndSwap(c, nil) {
		return nil
	}
	return c.refusal
}

// Accepted implements Pusher: it binds the session to newer credentials, unless it was
// bound to others since they came, or the server takes anybody's that say the same.
func (s *Session) Accepted(c downstream.Caller) bool {
	return c.Rotation != 0 && s.bind(c, true)
}

// prove binds the session to newer credentials if the server says that it knows them. Requests
// that bring the same at the same time wait for one answer.
func (s *Session) prove(c downstream.Caller) bool {
	if s.set.opt.Genuine == nil || s.owner().auth == "" { // nobody can tell, or nothing tells them apart
		return false
	}
	proven, _, _ := s.set.proofs.under.Do(s.rec.ID+" "+c.Authorization, func() (any, error) { return s.bind(c, false), nil })
	return proven == true
}

// bind binds the session to newer credentials, which the server has accepted for something or
// has yet to be asked about.
func (s *Session) bind(c downstream.Caller, accepted bool) bool {
	before := s.rebound.Load()
	owner := s.owner() // of before, or a later one, which the swap finds out
	if c.Rotation != owner.n || owner.by(c.Authorization) {
		return owner.by(c.Authorization)
	}
	after := owner.renewed(strings.Clone(c.Authorization), c.Principal)
	if owner.auth == "" {
		after.principal, after.also = c.Principal, nil
	} else if !s.genuine(c, owner.auth, accepted) {
		return false
	}
	if !s.rebound.CompareAndSwap(before, after) {
		return false
	}
	s.Changed()
	s.conv.Reauthorize(after.auth)
	return true
}

// genuine reports whether a token is more than somebody says.
func (s *Session) genuine(c downstream.Caller, bound string, accepted bool) bool {
	newer := c.Authorization
	switch {
	case s.set.opt.Genuine == nil:
		return accepted
	case s.doubted.Load().of(newer, accepted), !accepted && !s.set.proofs.may(s.rec.ID, c.Tenant):
		return false
	case s.set.opt.Genuine(c.Tenant, bound, newer, accepted):
		return true
	}
	s.doubted.Store(&doubt{strings.Clone(newer), accepted, time.Now().Add(doubtFor)})
	return false
}

// Changed implements Pusher.
func (s *Session) Changed() {
	if s.stored != nil && s.listed.Load() {
		s.set.keeper.save(s)
	}
}
