package stream

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// Set has the streams of one session. It is a part of that, and kept small: everything
// that an idle session doesn't need is allocated on first use. The methods are safe for
// concurrent use.
type Set struct {
	endpoint *Endpoint
	user     User
	session  *sessions.Record
	account  *budget.Account // of the session; may be nil
	first    uint64          // number of the standalone stream; those of calls are above
	attached atomic.Int32    // GETs that have a connection

	mu         sync.Mutex
	closed     bool
	last       uint64      // number of the newest stream that began here
	calls      *ofCalls    // nil until the first stream of a call
	standalone *standalone // nil until the client listens, or there is something for it
}

// User is told when a session was in use, since its client has listened, before it counts as unused. It is called under locks.
type User interface{ Used() }

// ofCalls are the streams of calls.
type ofCalls struct {
	streams []*sessions.Stream // by number
	retired []*retired         // the ended ones among them, oldest first
	left    map[uint64]bool    // numbers of those that began here and were left to others, or to the store
	over    []uint64           // numbers of those that were brought back, and have ended and gone since; the latest
}

// maxOver bounds those.
const maxOver = 64

// standalone is what belongs to no call: the stream of it, and what waits for that.
type standalone struct {
	stream  *sessions.Stream // nil until the client listens
	pending []push
	lists   []word // the newest live one of each list
}

// push is a message that waits for the client to listen.
type push struct {
	key string
	msg []byte
}

// size is what it is charged for: keys have the URIs of resources.
func (p *push) size() int { return len(p.key) + len(p.msg) }

// word is what the standalone stream last said of a list that has changed.
type word struct {
	key string
	seq uint64
}

// Init makes the set that of a session, whose standalone stream has this number.
func (s *Set) Init(e *Endpoint, user User, session *sessions.Record, account *budget.Account, first Number) {
	s.endpoint, s.user, s.session, s.account = e, user, session, account
	s.first = uint64(first)
	s.last = s.first
}

// Listening reports whether a GET is attached to one of the streams.
func (s *Set) Listening() bool { return s.attached.Load() > 0 }

// detach counts a GET out.
func (s *Set) detach() {
	s.user.Used()
	s.attached.Add(-1)
}

// Empty reports whether no stream of a call is here, be it for somebody who comes back, and nobody listens.
func (s *Set) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.callsLocked().streams) == 0 && s.attached.Load() == 0
}

// add returns a new stream for a call. Its events have ids whatever the version (E-9):
// resumability came with Streamable HTTP itself, and clients that offer 2024-11-05 over
// it make use of it, too. of is the principal of who made the call.
func (s *Set) add(of string) *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	if isStandalone(s.last) {
		s.last++
	}
	st := sessions.NewStream(s.last, s.endpoint.limits(s.account))
	st.Belong(of)
	s.insertLocked(st)
	return st
}

func (s *Set) insertLocked(st *sessions.Stream) {
	if s.calls == nil {
		s.calls = new(ofCalls)
	}
	i, _ := s.indexLocked(st.ID())
	s.calls.streams = slices.Insert(s.calls.streams, i, st)
}

// callsLocked returns the streams of calls, to be read.
func (s *Set) callsLocked() ofCalls {
	if s.calls == nil {
		return ofCalls{}
	}
	return *s.calls
}

// Find returns the stream with this number, nil when it is unknown or gone.
func (s *Set) Find(id uint64) *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isStandalone(id) {
		if id != s.first {
			return nil
		}
		return s.listenedLocked()
	}
	if i, ok := s.indexLocked(id); ok {
		return s.calls.streams[i]
	}
	return nil
}

// FindFor is Find for somebody who comes back for a stream: others' calls are none to him (E-24).
func (s *Set) FindFor(caller *downstream.Caller, id uint64) *sessions.Stream {
	st := s.Find(id)
	if st == nil || !caller.Resumes(st.Of()) {
		return nil
	}
	return st
}

// listenedLocked returns the standalone stream; nil: the client never listened.
func (s *Set) listenedLocked() *sessions.Stream {
	if s.standalone == nil {
		return nil
	}
	return s.standalone.stream
}

// apartLocked returns what belongs to no call, made on first use.
func (s *Set) apartLocked() *standalone {
	if s.standalone == nil {
		s.standalone = new(standalone)
	}
	return s.standalone
}

// indexLocked finds a stream.
func (s *Set) indexLocked(id uint64) (int, bool) {
	return slices.BinarySearchFunc(s.callsLocked().streams, id, func(st *sessions.Stream, id uint64) int { return cmp.Compare(st.ID(), id) })
}

// Push has a message reach the client outside of any call: at once when it listens
// (C.3), otherwise when it does, and then only the newest of each key.
func (s *Set) Push(key string, msg []byte) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	st := s.listenedLocked()
	live := st != nil && st.QueueLive(msg)
	if !live {
		s.keepLocked(key, msg)
	} else if mcp.IsListChanged(key) {
		s.standalone.said(key)
	}
	s.mu.Unlock()
	if live {
		st.Flush()
	}
}

// said has the stream keep the newest word on each list only: one server says them to
// all sessions.
func (a *standalone) said(key string) {
	i := slices.IndexFunc(a.lists, func(w word) bool { return w.key == key })
	if i < 0 {
		i = len(a.lists)
		a.lists = append(a.lists, word{key: key})
	}
	a.lists[i].seq = a.stream.Supersede(a.lists[i].seq)
}

// keepLocked coalesces messages by key. When too many keys wait the oldest message
// goes: it is the one that the client's next look is most likely to cover.
func (s *Set) keepLocked(key string, msg []byte) {
	apart, next := s.apartLocked(), push{key, msg}
	waiting := apart.pending
	for i := range waiting {
		if waiting[i].key == key {
			s.account.Give(waiting[i].size())
			s.account.Charge(next.size())
			waiting[i] = next
			return
		}
	}
	if len(waiting) >= s.endpoint.opt.MaxPending || len(waiting) > 0 && s.account.Tight() {
		method, _, _ := strings.Cut(waiting[0].key, " ") // what follows is the client's own: an address, with what only it may know
		s.endpoint.dropped.Warn().Str(logfield.SessionID, logfield.Short(s.session.ID)).Str(logfield.Method, method).
			Msg("too many messages wait for the client to listen; dropped the oldest")
		s.account.Give(waiting[0].size())
		waiting = append(waiting[:0], waiting[1:]...)
	}
	s.account.Charge(next.size())
	apart.pending = append(waiting, next)
}

// listen attaches a GET to the standalone stream; the newest one wins.
// Without an event to resume after, it goes on after what the last connection was given.
func (s *Set) listen(c *Response, st *sessions.Stream, resume bool, after uint64) {
	s.mu.Lock()
	if resume {
		st.Attach(c, after)
	} else {
		st.Resume(c)
		if message.Priming(s.session.Version) {
			st.Put(nil)
		}
	}
	apart := s.apartLocked()
	for _, p := range apart.pending {
		s.account.Give(p.size())
		st.Put(p.msg)
	}
	apart.pending = nil
	s.mu.Unlock()
	st.Flush()
}

// ensureStandalone returns the session's stream for GET, nil when it is closed.
func (s *Set) ensureStandalone() *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listenedLocked() == nil && !s.closed {
		s.apartLocked().stream = sessions.NewStream(s.first, s.endpoint.limits(s.account))
	}
	return s.listenedLocked()
}

// Close forgets the streams when the session ends. Those of calls that are under way
// end with their calls; the one that belongs to no call ends here.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	standalone := s.listenedLocked()
	for _, k := range s.callsLocked().retired {
		k.retention.Remove()
		k.stream.Retire(nil, false)
	}
	s.calls, s.standalone = nil, nil
	s.mu.Unlock()
	if standalone != nil {
		standalone.Finish(nil)
	}
}

// Forget has a stream be found no more: another replica goes on with it. The one that brings its
// number back, should the call come back here, is another one.
func (s *Set) Forget(st *sessions.Stream) { s.ForgetOne(st.ID(), st) }

// ForgetOne is Forget for a stream of which only the number may be left: nil.
func (s *Set) ForgetOne(id uint64, st *sessions.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st != nil && s.dropLocked(st) {
		st.Forget()
	}
	if s.calls != nil {
		s.calls.over = slices.DeleteFunc(s.calls.over, func(n uint64) bool { return n == id })
	}
	if s.beganLocked(id) { // be it that its end was forgotten here before it was known that it goes on elsewhere
		if s.calls == nil {
			s.calls = new(ofCalls)
		}
		if s.calls.left == nil {
			s.calls.left = map[uint64]bool{}
		}
		s.calls.left[id] = true
	}
}

// IsOver reports whether a call began here, or was brought back not long ago, and has ended here, though its stream is gone. After Close
// nobody knows.
func (s *Set) IsOver(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.indexLocked(id)
	calls := s.callsLocked()
	return !is && !s.closed && (s.beganLocked(id) && !calls.left[id] || slices.Contains(calls.over, id))
}

// HasEnded is IsOver also for a call whose stream is there still, to be fetched.
func (s *Set) HasEnded(id uint64) bool {
	if st := s.Find(id); st != nil {
		return st.Look().Ended
	}
	return s.IsOver(id)
}

func (s *Set) beganLocked(id uint64) bool { return s.first < id && id <= s.last }

// dropLocked takes a stream out, and reports whether it was there.
func (s *Set) dropLocked(st *sessions.Stream) bool {
	i, ok := s.indexLocked(st.ID())
	if !ok || s.calls.streams[i] != st {
		return false
	}
	s.calls.streams = slices.Delete(s.calls.streams, i, i+1)
	if !s.beganLocked(st.ID()) && st.Look().Ended {
		s.calls.over = append(s.calls.over[max(0, len(s.calls.over)-maxOver+1):], st.ID())
	}
	return true
}

// Look tells what there is to see of the streams at this moment.
func (s *Set) Look() (seen []observe.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.callsLocked().streams {
		seen = append(seen, st.Look())
	}
	if standalone := s.listenedLocked(); standalone != nil {
		seen = append(seen, standalone.Look())
	}
	return seen
}
