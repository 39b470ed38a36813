package stream

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/sessions"
)

const large = 1 << 20

// charged returns the streams of a session of somebody, on a budget. It keeps as many as it may.
func charged(t *testing.T, memory *budget.Budget, principal string) *Set {
	s := set(t, 0)
	s.endpoint.opt.MaxStreams = 100
	account, err := memory.Open(principal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(account.Close)
	s.account = account
	return s
}

// ends ends a call with a large result, which its client gets unless that has left.
func (s *Set) ends(delivered bool) *sessions.Stream {
	st, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
	st.Append([]byte("begun"))
	if !delivered {
		c.Leave()
	}
	st.Finish(bytes.Repeat([]byte("x"), large))
	c.Leave()
	s.Retire(st, false, false)
	return st
}

// A client that has its result may ask for it again: that is no reason to refuse others.
func TestDeliveredResultsMakeRoomForNewcomers(t *testing.T) {
	memory := budget.New(20 * large)
	one := charged(t, memory, "one")
	owed, first, another := one.ends(false), one.ends(true), charged(t, memory, "another")
	second := another.ends(true)
	third := one.ends(true)
	charged(t, memory, "busy").account.Charge(14 * large)
	newcomer := charged(t, memory, "new")
	want(t, "refused", memory.Refused(), 0)
	if err := newcomer.account.Take(100); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]struct {
		s    *Set
		st   *sessions.Stream
		kept bool
	}{
		"what was not delivered": {one, owed, true}, "the oldest": {one, first, false}, "the next": {another, second, true}, "the last": {one, third, true},
	} {
		want(t, what+" is kept", c.s.Find(c.st.ID()) == c.st, c.kept)
	}
	status, _ := one.resumed("2-1")
	want(t, "who comes back for the oldest gets", status, 400)
	status, body := one.resumed("1-1")
	want(t, "who was owed a result gets", status, 200)
	want(t, "all of it", len(body) > large, true)
	want(t, "on the agenda", one.endpoint.retention.Len(), 2)
}

// What was fetched once is delivered from then on, and what is being fetched is not forgotten.
func TestAResultThatWasFetchedMakesRoom(t *testing.T) {
	memory := budget.New(10 * large)
	s := charged(t, memory, "one")
	st := s.ends(false)
	full := charged(t, memory, "busy").account
	full.Charge(8 * large)
	_, err := memory.Open("new")
	want(t, "a newcomer beside one that is owed", errors.Is(err, budget.ErrFull), true)
	status, _ := s.resumed("1-1")
	want(t, "it is fetched", status, 200)
	c := s.endpoint.newResponse(httptest.NewRecorder(), st, s, downstream.Term{Ends: s.until(st)})
	st.Attach(c, 1)
	_, err = memory.Open("new")
	want(t, "while somebody fetches it again", errors.Is(err, budget.ErrFull), true)
	want(t, "it is kept", s.Find(1) == st, true)
	c.Leave()
	charged(t, memory, "new")
	want(t, "then it is kept", s.Find(1) == st, false)
}

// Who is about to be refused may hold any lock, and waits for none.
func TestWhoNeedsRoomWaitsForNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(10 * large)
		s := charged(t, memory, "one")
		s.ends(true)
		charged(t, memory, "busy").account.Charge(8 * large)
		s.mu.Lock()
		_, err := memory.Open("new")
		s.mu.Unlock()
		want(t, "a newcomer while a session is in use", errors.Is(err, budget.ErrFull), true)
		synctest.Wait()
		charged(t, memory, "new")
		want(t, "afterwards it is kept", s.Find(1) != nil, false)
	})
}

// A session that has ended is nobody's to give back.
func TestAnEndedSessionHasNothingToGiveBack(t *testing.T) {
	memory := budget.New(10 * large)
	s := charged(t, memory, "one")
	st := s.ends(true)
	s.Close()
	charged(t, memory, "busy").account.Charge(8 * large)
	_, err := memory.Open("new")
	want(t, "a newcomer", errors.Is(err, budget.ErrFull), true)
	want(t, "its events", st.Look().Kept, 1)
}
