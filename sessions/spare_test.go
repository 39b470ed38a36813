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
	s.Retire(&spare, false)
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
	s.Retire(&spare, false)
	account.Charge(1 << 20)
	want(t, "refused", account.Take(1) != nil, true)
	want(t, "it holds", s.Look().Kept, 1)
	back := new(tape)
	s.Attach(back, 0)
	s.Flush()
	_ = account.Take(1)
	want(t, "once it was fetched it holds", s.Look().Kept, 0)
}

// Who comes back with the id of the last event has had it, whether it was known to have reached a connection or not.
func TestAStreamWhoseClientNamesItsLastEventIsSpare(t *testing.T) {
	memory := budget.New(1 << 20)
	account := memory.Guest("p")
	s := NewStream(1, Limits{Account: account})
	spare := account.Spare(giver{s})
	s.Attach(&tape{fail: true}, 0)
	s.Finish(ev("result"))
	s.Retire(&spare, false)
	account.Charge(1 << 20)
	want(t, "owing", s.Owing(), true)
	want(t, "before the last event there is more", s.Exhausted(0), false)
	want(t, "owing then", s.Owing(), true)
	want(t, "after it there is none", s.Exhausted(1), true)
	want(t, "owing at last", s.Owing(), false)
	_ = account.Take(1)
	want(t, "it holds", s.Look().Kept, 0)
}

// Of a call that goes on nothing is dropped while there is something that its client has had.
func TestWhatIsOwedIsKeptWhileAnythingIsSpare(t *testing.T) {
	memory := budget.New(1 << 20)
	one, another := memory.Guest("one"), memory.Guest("another")
	delivered := NewStream(1, Limits{Account: one})
	spare := one.Spare(giver{delivered})
	delivered.Attach(new(tape), 0)
	delivered.Finish(make([]byte, 500<<10))
	delivered.Retire(&spare, false)
	another.Charge(300 << 10)
	owed := NewStream(2, Limits{Account: another})
	owed.Append(ev("question"))
	owed.Append(ev("progress"))
	want(t, "kept of what is owed", owed.Look().Kept, 2)
	want(t, "kept of what was delivered", delivered.Look().Kept, 0)
	another.Charge(200 << 10)
	owed.Append(ev("more"))
	want(t, "kept with nothing to give back", owed.Look().Kept, 1)
}

// Where results are small, most of what they hold is what each event costs besides: a newcomer is taken in for that, too.
func TestSmallDeliveredResultsMakeRoomForNewcomers(t *testing.T) {
	memory := budget.New(1 << 20)
	account := memory.Guest("p")
	for i := range uint64(100) {
		s := NewStream(i, Limits{Account: account})
		spare := account.Spare(giver{s})
		s.Attach(new(tape), 0)
		for range 20 {
			s.Append(ev("x"))
		}
		s.Finish(ev("result"))
		s.Retire(&spare, false)
	}
	held := memory.Used()
	memory.Guest("q").Charge(7<<17 - int(held) + int(held)/2)
	if _, err := memory.Open("new"); err != nil {
		t.Errorf("with delivered results of %d bytes, and half of that too little free: %v", held, err)
	}
}

// What a store has, too, is no loss; what came back from there is for somebody.
func TestAnEndThatIsKeptElsewhereIsSpare(t *testing.T) {
	for back, kept := range map[bool]int{false: 0, true: 1} {
		memory := budget.New(1 << 20)
		account := memory.Guest("p")
		s := NewStream(1, Limits{Account: account})
		spare := account.Spare(giver{s})
		if !back {
			gone := new(tape)
			s.Attach(gone, 0)
			s.Detach(gone)
		}
		s.Finish(ev("result"))
		account.Charge(1 << 20)
		s.Retire(&spare, true)
		_ = account.Take(1)
		want(t, "it holds", s.Look().Kept, kept)
		s.Retire(nil, false)
	}
}
