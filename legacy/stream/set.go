package stream

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

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
	session  *sessions.Record
	account  *budget.Account // of the session; may be nil
	first    uint64          // number of the standalone stream; those of calls are above
	attached atomic.Int32    // GETs that have a connection

	mu         sync.Mutex
	last       uint64             // number of the newest stream that began here
	streams    []*sessions.Stream // by number
	retired    []*retired         // the ended ones among streams, oldest first
	standalone *sessions.Stream
	pending    []push
	lists      []word // the newest live one of each list
	closed     bool
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
func (s *Set) Init(e *Endpoint, session *sessions.Record, account *budget.Account, first Number) {
	s.endpoint, s.session, s.account = e, session, account
	s.first = uint64(first)
	s.last = s.first
}

// Listening reports whether a GET is attached to one of the streams.
func (s *Set) Listening() bool { return s.attached.Load() > 0 }

// Empty reports whether no stream of a call is here, be it for somebody who comes back, and nobody listens.
func (s *Set) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) == 0 && s.attached.Load() == 0
}

// add returns a new stream for a call. Its events have ids whatever the version (E-9):
// resumability came with Streamable HTTP itself, and clients that offer 2024-11-05 over
// it make use of it, too.
func (s *Set) add() *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	if isStandalone(s.last) {
		s.last++
	}
	st := sessions.NewStream(s.last, s.endpoint.limits(s.account))
	s.insertLocked(st)
	return st
}

func (s *Set) insertLocked(st *sessions.Stream) {
	i, _ := s.indexLocked(st.ID())
	s.streams = slices.Insert(s.streams, i, st)
}

// Find returns the stream with this number, nil when it is unknown or gone.
func (s *Set) Find(id uint64) *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isStandalone(id) {
		if id != s.first {
			return nil
		}
		return s.standalone
	}
	if i, ok := s.indexLocked(id); ok {
		return s.streams[i]
	}
	return nil
}

// indexLocked finds a stream.
func (s *Set) indexLocked(id uint64) (int, bool) {
	return slices.BinarySearchFunc(s.streams, id, func(st *sessions.Stream, id uint64) int { return cmp.Compare(st.ID(), id) })
}

// Push has a message reach the client outside of any call: at once when it listens
// (C.3), otherwise when it does, and then only the newest of each key.
func (s *Set) Push(key string, msg []byte) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	st := s.standalone
	live := st != nil && st.QueueLive(msg)
	if !live {
		s.keepLocked(key, msg)
	} else if mcp.IsListChanged(key) {
		s.saidLocked(key, st)
	}
	s.mu.Unlock()
	if live {
		st.Flush()
	}
}

// saidLocked has the stream keep the newest word on each list only: one server says them to
// all sessions.
func (s *Set) saidLocked(key string, st *sessions.Stream) {
	i := slices.IndexFunc(s.lists, func(w word) bool { return w.key == key })
	if i < 0 {
		i = len(s.lists)
		s.lists = append(s.lists, word{key: key})
	}
	s.lists[i].seq = st.Supersede(s.lists[i].seq)
}

// keepLocked coalesces messages by key. When too many keys wait the oldest message
// goes: it is the one that the client's next look is most likely to cover.
func (s *Set) keepLocked(key string, msg []byte) {
	next := push{key, msg}
	for i := range s.pending {
		if s.pending[i].key == key {
			s.account.Give(s.pending[i].size())
			s.account.Charge(next.size())
			s.pending[i] = next
			return
		}
	}
	if len(s.pending) >= s.endpoint.opt.MaxPending || len(s.pending) > 0 && s.account.Tight() {
		s.endpoint.dropped.Warn().Str(logfield.SessionID, logfield.Short(s.session.ID)).Str("key", s.pending[0].key).
			Msg("too many messages wait for the client to listen; dropped the oldest")
		s.account.Give(s.pending[0].size())
		s.pending = append(s.pending[:0], s.pending[1:]...)
	}
	s.account.Charge(next.size())
	s.pending = append(s.pending, next)
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
	waiting := s.pending
	s.pending = nil
	for _, p := range waiting {
		s.account.Give(p.size())
		st.Put(p.msg)
	}
	s.mu.Unlock()
	st.Flush()
}

// ensureStandalone returns the session's stream for GET, nil when it is closed.
func (s *Set) ensureStandalone() *sessions.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone == nil && !s.closed {
		s.standalone = sessions.NewStream(s.first, s.endpoint.limits(s.account))
	}
	return s.standalone
}

// Close forgets the streams when the session ends. Those of calls that are under way
// end with their calls; the one that belongs to no call ends here.
func (s *Set) Close() {
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

// Forget has a stream be found no more: another replica goes on with it. The one that brings its
// number back, should the call come back here, is another one.
func (s *Set) Forget(st *sessions.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropLocked(st) {
		st.Forget()
	}
}

// dropLocked takes a stream out, and reports whether it was there.
func (s *Set) dropLocked(st *sessions.Stream) bool {
	i, ok := s.indexLocked(st.ID())
	if !ok || s.streams[i] != st {
		return false
	}
	s.streams = slices.Delete(s.streams, i, i+1)
	return true
}

// Look tells what there is to see of the streams at this moment.
func (s *Set) Look() (seen []observe.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		seen = append(seen, st.Look())
	}
	if s.standalone != nil {
		seen = append(seen, s.standalone.Look())
	}
	return seen
}
