package sessions

import (
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
)

func TestALogIsChargedForWhatItHolds(t *testing.T) {
	memory := budget.New(1 << 20)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(1, Limits{Events: 2, Account: account})
	for range 5 {
		s.Append(make([]byte, 100))
	}
	want(t, "two events are held", memory.Used(), 2*(100+eventCost))
	s.Forget()
	want(t, "forgotten", memory.Used(), 0)
	s.Append(make([]byte, 100))
	want(t, "and never charged again", memory.Used(), 0)
}

func TestALogHoldsNothingForLaterWhileItsSessionHoldsTooMuch(t *testing.T) {
	memory := budget.New(1000)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	l := Log{limits: Limits{Account: account}}
	for range 3 {
		l.Append(make([]byte, 50))
	}
	l.Bound(3)
	want(t, "held", l.First(), 1)
	account.Charge(400)
	l.Bound(2)
	want(t, "what was taken is gone", l.First(), 3)
	want(t, "what was not is there", l.Last(), 3)
}
