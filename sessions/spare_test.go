package sessions

import (
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
)

// giver gives a stream back.
type giver struct{ *Stream }

func (g giver) GiveBack() (given, busy bool) { return g.TryForget() }

func TestADeliveredStreamIsSpareUntilSomebodyComesBack(t *testing.T) {
	memory := budget.New(1 << 20)
	account := memory.Guest("p")
	s := NewStream(1, Limits{Account: account})
	spare := account.Spare(giver{s})
	at := new(tape)
	s.Attach(at, 0)
	account.Charge(1 << 20)
	full := func() bool { return account.Take(1) != nil }
	s.Finish(ev("result"))
	want(t, "before it is retired", full(), true)
	s.Retire(&spare)
	again := new(tape)
	s.Attach(again, 0)
	want(t, "while somebody has come back", full(), true)
	want(t, "it holds", s.Look().Kept, 1)
	s.Detach(again)
	s.mu.Lock()
	forgotten, busy := s.TryForget()
	want(t, "in use it is forgotten", forgotten, false)
	want(t, "in use it is busy", busy, true)
	s.mu.Unlock()
	want(t, "then there is room", full(), true) // a little
	want(t, "it holds", s.Look().Kept, 0)
}

func TestAnUndeliveredStreamIsNotSpare(t *testing.T) {
	memory := budget.New(1 << 20)
	account := memory.Guest("p")
	s := NewStream(1, Limits{Account: account})
	spare := account.Spare(giver{s})
	broken := &tape{fail: true}
	s.Attach(broken, 0)
	s.Finish(ev("result"))
	s.Retire(&spare)
	account.Charge(1 << 20)
	want(t, "refused", account.Take(1) != nil, true)
	want(t, "it holds", s.Look().Kept, 1)
	back := new(tape)
	s.Attach(back, 0)
	s.Flush()
	_ = account.Take(1)
	want(t, "once it was fetched it holds", s.Look().Kept, 0)
}
