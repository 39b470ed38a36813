package legacy

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// isStandalone reports whether a number is that of the stream which GET opens without
// Last-Event-ID. It is 0, and a multiple of 2³² in a session that was brought back.
func isStandalone(stream uint64) bool { return uint32(stream) == 0 }

// session is a client of the Streamable HTTP transport between initialize and
// its end. It is kept small: everything that an idle session doesn't need is
// allocated on first use.
type session struct {
	http *HTTP
	rec  sessions.Record
	born time.Time
	auth string // the Authorization that opened it
	conv downstream.Conversation

	kept *kept // nil: not in a store

	rebound atomic.Pointer[binding] // when it is bound to newer credentials

	active    atomic.Int32 // exchanges under way and attached GET streams
	calls     atomic.Int32 // requests of those exchanges
	listed    atomic.Bool  // in the table, or no longer
	ended     atomic.Bool  // by the conversation's other side
	challenge atomic.Pointer[challenge]

	mu         sync.Mutex
	last       uint64              // number of the newest stream
	streams    []*sessions.Stream  // by number, which only grows
	retired    []*retiredStream    // the ended ones among streams, oldest first
	replays    map[uint32]replayed // of streams that were brought back, by the lower half of their numbers
	standalone *sessions.Stream
	pending    []push
	closed     bool
}

// push is a message that waits for the client to listen.
type push struct {
	key string
	msg []byte
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
	if !ok && h.keeper != nil {
		return h.keeper.restore(r, id)
	}
	return s, nil
}

func (s *session) busy() bool { return s.active.Load() > 0 }

// newStream returns the stream for one exchange. Its events have ids whatever the
// version (E-9): resumability came with Streamable HTTP itself, and clients that
// offer 2024-11-05 over it make use of it, too.
func (s *session) newStream() *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	st := sessions.NewStream(s.last, s.http.opt.Log)
	s.streams = append(s.streams, st)
	return st
}

// stream returns the stream with this number, nil when it is unknown or gone.
func (s *session) stream(id uint64) *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isStandalone(id) {
		if id != s.kept.first() {
			return nil
		}
		return s.standalone
	}
	if _, ok := s.replays[uint32(id)]; ok && id < s.kept.first() {
		id = s.kept.first() | uint64(uint32(id)) // what an earlier process called otherwise
	}
	if i, ok := s.indexLocked(id); ok {
		return s.streams[i]
	}
	return nil
}

// indexLocked finds a stream.
func (s *session) indexLocked(id uint64) (int, bool) {
	return slices.BinarySearchFunc(s.streams, id, func(st *sessions.Stream, id uint64) int { return cmp.Compare(st.ID(), id) })
}

// retire keeps an ended stream for a while, so that a client that lost its
// connection can fetch the end (E-20). When there are too many, one whose last word
// was delivered gives way, if there is one.
func (s *session) retire(st *sessions.Stream) {
	k := &retiredStream{session: s, stream: st}
	k.retention.Item = k
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.http.retention.Add(&k.retention)
	s.retired = append(s.retired, k)
	if len(s.retired) > s.http.opt.MaxStreams {
		s.forgetLocked(max(0, slices.IndexFunc(s.retired, (*retiredStream).delivered)))
	}
}

// forgetLocked drops the retired stream at this index.
func (s *session) forgetLocked(i int) {
	k := s.retired[i]
	k.retention.Remove()
	if at, ok := s.indexLocked(k.stream.ID()); ok {
		s.streams = slices.Delete(s.streams, at, at+1)
	}
	s.retired = slices.Delete(s.retired, i, i+1)
	if len(s.retired) == 0 {
		s.retired = nil
	}
	if len(s.streams) == 0 {
		s.streams = nil
	}
}

// retiredStream is an ended stream's place on the agenda of retention.
type retiredStream struct {
	retention agenda.Entry
	session   *session
	stream    *sessions.Stream
}

func (k *retiredStream) delivered() bool { return k.stream.Delivered() }

// Due ends the retention.
func (k *retiredStream) Due() (again bool) {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.retired, k); i >= 0 {
		s.forgetLocked(i)
	}
	return false
}

// Push implements Pusher (C.3).
func (s *session) Push(key string, m downstream.Message) {
	msg := message.TextOf(&m)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	st := s.standalone
	live := st != nil && st.QueueLive(msg)
	if !live {
		s.keepLocked(key, msg)
	}
	s.mu.Unlock()
	if live {
		st.Flush()
	}
}

// keepLocked coalesces messages by key. When too many keys wait the oldest message
// goes: it is the one that the client's next look is most likely to cover.
func (s *session) keepLocked(key string, msg []byte) {
	for i := range s.pending {
		if s.pending[i].key == key {
			s.pending[i].msg = msg
			return
		}
	}
	if len(s.pending) >= s.http.opt.MaxPending {
		s.http.opt.Logger.Warn().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Str("key", s.pending[0].key).
			Msg("too many messages wait for the client to listen; dropped the oldest")
		s.pending = append(s.pending[:0], s.pending[1:]...)
	}
	s.pending = append(s.pending, push{key, msg})
}

// listen attaches a GET to the standalone stream; the newest one wins.
// Without an event id to resume after, it goes on after what the last
// connection was given.
func (s *session) listen(c *carrier, st *sessions.Stream, resume bool, after uint64) {
	s.mu.Lock()
	if resume {
		st.Attach(c, after)
	} else {
		st.Resume(c)
		if message.Priming(s.rec.Version) {
			st.Put(nil)
		}
	}
	waiting := s.pending
	s.pending = nil
	for _, p := range waiting {
		st.Put(p.msg)
	}
	s.mu.Unlock()
	st.Flush()
}

// standaloneStream returns the session's stream for GET, nil when it is closed.
func (s *session) standaloneStream() *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone == nil && !s.closed {
		s.standalone = sessions.NewStream(s.kept.first(), s.http.opt.Log)
	}
	return s.standalone
}

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
	s.mu.Lock()
	s.closed = true
	standalone := s.standalone
	for _, k := range s.retired {
		k.retention.Remove()
	}
	s.streams, s.retired, s.pending, s.standalone = nil, nil, nil, nil
	s.mu.Unlock()
	if standalone != nil {
		standalone.Finish(nil)
	}
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
func (s *session) refuse(w http.ResponseWriter, auth string) bool {
	c := s.challenge.Load()
	if c == nil || c.auth != auth || !s.challenge.CompareAndSwap(c, nil) {
		return false
	}
	web.WriteRefusal(w, c.refusal)
	return true
}
