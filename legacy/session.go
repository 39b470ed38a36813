package legacy

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// standaloneID is the number of the stream that GET opens without Last-Event-ID.
const standaloneID = 0

// session is a client of the Streamable HTTP transport between initialize and
// its end. It is kept small: everything that an idle session doesn't need is
// allocated on first use.
type session struct {
	http *HTTP
	rec  sessions.Record
	born time.Time
	auth string // the Authorization that opened it
	conv downstream.Conversation

	rebound atomic.Pointer[binding] // when it is bound to newer credentials

	active    atomic.Int32 // exchanges under way and attached GET streams
	calls     atomic.Int32 // requests of those exchanges
	listed    atomic.Bool  // in the table, or no longer
	ended     atomic.Bool  // by the conversation's other side
	challenge atomic.Pointer[challenge]

	mu         sync.Mutex
	last       uint64             // number of the newest stream
	streams    []*sessions.Stream // by number, which only grows
	retired    []*retiredStream   // the ended ones among streams, oldest first
	standalone *sessions.Stream
	pending    []push
	closed     bool
}

// push is a message that waits for the client to listen.
type push struct {
	key string
	msg []byte
}

// find returns the live session that a request names and who it acts for.
// named reports whether it names one at all. To another principal the session
// doesn't exist (H-8).
func (h *HTTP) find(r *http.Request) (s *session, caller downstream.Caller, named bool) {
	id := header(r.Header, mcp.HeaderSessionID)
	if id == "" {
		return nil, downstream.Caller{}, false
	}
	s, ok := h.table.Get(id)
	if !ok {
		return nil, downstream.Caller{}, true
	}
	caller, ok = h.callerOf(s, r)
	if !ok {
		return nil, downstream.Caller{}, true
	}
	return s, caller, true
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
	if id == standaloneID {
		return s.standalone
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
		s.standalone = sessions.NewStream(standaloneID, s.http.opt.Log)
	}
	return s.standalone
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
	writeRefusal(w, c.refusal)
	return true
}
