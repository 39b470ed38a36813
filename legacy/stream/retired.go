package stream

import (
	"slices"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/sessions"
)

// retired is an ended stream's place on the agenda of retention.
type retired struct {
	retention agenda.Entry
	spare     budget.Spare
	set       *Set
	stream    *sessions.Stream
	visitor   bool // of somebody who knows no more than the session's id
	kept      bool // its end is in a store, too
}

// GiveBack implements budget.Giver.
func (k *retired) GiveBack() (given, busy bool) {
	if !k.set.mu.TryLock() {
		go k.giveBackLate()
		return false, true
	}
	defer k.set.mu.Unlock()
	if given, busy = k.stream.TryForget(); given {
		k.set.dropRetiredLocked(k)
	} else if busy {
		go k.giveBackLate()
	}
	return given, busy
}

// giveBackLate is GiveBack for who may wait, since somebody used the stream or its session.
func (k *retired) giveBackLate() {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	if k.stream.Rests() {
		k.set.forgetRetiredLocked(k)
	}
}

// forgetRetiredLocked drops a retired stream, if it is here still, and what it holds.
func (s *Set) forgetRetiredLocked(k *retired) {
	if slices.Contains(s.callsLocked().retired, k) {
		k.stream.Forget()
		s.dropRetiredLocked(k)
	}
}

// dropRetiredLocked drops a retired stream that was forgotten, if it is here still.
func (s *Set) dropRetiredLocked(k *retired) {
	i := slices.Index(s.callsLocked().retired, k)
	if i < 0 {
		return
	}
	c := s.calls
	k.retention.Remove()
	s.dropLocked(k.stream)
	c.retired = slices.Delete(c.retired, i, i+1)
	if len(c.streams)+len(c.retired)+len(c.left)+len(c.over) == 0 {
		s.calls = nil
	}
}

// Retire keeps an ended stream for a while, so that a client that lost its
// connection can fetch the end (E-20). Where memory is short those go whose last word was
// delivered, oldest first (GiveBack). What was delivered and what was not are counted apart,
// the latter also by whether it is a visitor's: of a request with credentials that the session
// is not bound to. Of each kind the oldest give way. kept says that the end is in a store, where it can be fetched
// when it was forgotten here, or this process has ended: it is counted apart, too.
func (s *Set) Retire(st *sessions.Stream, visitor, kept bool) {
	k := &retired{set: s, stream: st, visitor: visitor, kept: kept}
	k.retention.Item = k
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, known := s.indexLocked(st.ID()); s.closed || !known || s.calls.streams[i] != st {
		return // nobody can come back for it
	}
	s.endpoint.retention.Add(&k.retention)
	s.calls.retired = append(s.calls.retired, k)
	k.spare = s.account.Spare(k)
	st.Retire(&k.spare, kept)
	s.boundLocked()
}

// boundLocked forgets streams while there are too many of a kind, and delivered ones while the
// session holds too much. What owes no answer counts as delivered.
func (s *Set) boundLocked() {
	all := s.callsLocked().retired
	var delivered, kept, owed, owedToVisitors int
	for i := len(all) - 1; i >= 0; i-- { // from the newest on: what is forgotten moves none that are to come
		k := all[i]
		n, most, lost := &owed, s.endpoint.opt.MaxOwed, true
		switch {
		case !k.stream.Owing():
			n, most, lost = &delivered, s.endpoint.opt.MaxStreams, false
		case k.kept:
			n, lost = &kept, false
		case k.visitor:
			n = &owedToVisitors
		}
		if *n++; *n <= most {
			continue
		}
		if lost {
			s.endpoint.lost.Warn().Str(logfield.SessionID, logfield.Short(s.session.ID)).Uint64(logfield.StreamID, k.stream.ID()).Int("limit", most).
				Msg("too many answers of a session wait to be fetched; forgot the oldest")
		}
		s.forgetRetiredLocked(k)
	}
	for s.account.Tight() {
		i := slices.IndexFunc(s.callsLocked().retired, (*retired).delivered)
		if i < 0 {
			return
		}
		s.forgetRetiredLocked(s.calls.retired[i])
	}
}

func (k *retired) delivered() bool { return k.stream.Delivered() }

// comesBack is how much longer than it was told to stay away a client may take to come back for the rest of a stream
// and still be waited for. One that lost its stream comes sooner or not at all.
const comesBack = 10 * time.Second

// Owes reports whether the end of a call is nowhere but here, and its client can be expected to come for it.
func (s *Set) Owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	within := s.endpoint.opt.PollPause + comesBack
	return slices.ContainsFunc(s.callsLocked().retired, func(k *retired) bool { return !k.kept && k.stream.Owed(within) })
}

// Owing reports whether an answer is kept here that has not reached a connection.
func (s *Set) Owing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.callsLocked().retired, func(k *retired) bool { return k.stream.Owing() })
}

// Due ends the retention.
func (k *retired) Due() (again bool) {
	s := k.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetRetiredLocked(k)
	return false
}

// BringBack adds a stream of another replica, of who is known by this principal, with the events that its
// client may not have had. Others up to last may have been sent.
func (s *Set) BringBack(stream uint64, of string, events []sessions.Event, last uint64) *sessions.Stream {
	st := sessions.NewStream(stream, s.endpoint.limits(s.account))
	st.Belong(of)
	st.Recall(events, last)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.insertLocked(st)
	delete(s.calls.left, stream)
	s.calls.over = slices.DeleteFunc(s.calls.over, func(n uint64) bool { return n == stream })
	return st
}

// HeardBefore reports whether an event id is one of the standalone stream of another
// process. What came there afterwards is made up for when the session is brought back.
func (s *Set) HeardBefore(id EventID) bool {
	return s.first != 0 && isStandalone(id.Stream) && id.Stream != s.first
}
