package budget

import (
	"errors"
	"testing"
)

// A principal may stand for many people, such as all of one address: those who hold next to
// nothing are served while others of them hold all that is theirs together, up to a bound
// that leaves the newcomers' reserve alone.
func TestGreedySessionsDoNotSilenceTheirPrincipal(t *testing.T) {
	b := New(128 * mib)
	modest := open(t, b, "address")
	if err := modest.Take(16 << 10); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		greedy := open(t, b, "address")
		greedy.Charge(mib)
		_, _ = fill(greedy, 1<<10)
	}
	if err := modest.Take(16 << 10); err != nil {
		t.Errorf("who holds next to nothing, beside greedy sessions of its address: %v", err)
	}
	for range 10_000 {
		_, _ = fill(open(t, b, "address"), 16<<10)
	}
	if b.Full() {
		t.Errorf("many small sessions of one address leave %d MiB for newcomers", b.free()/mib)
	}
	if err := open(t, b, "other").Take(mib); err != nil {
		t.Errorf("another principal: %v", err)
	}
}

// What is alive comes and goes faster than anybody looks: a flood may seem to leave nothing.
func TestWhoHoldsNextToNothingIsTheLastToBeRefused(t *testing.T) {
	b := New(128 * mib)
	modest, greedy := open(t, b, "modest"), open(t, b, "greedy")
	greedy.Charge(30 * mib)
	b.uncharged.Store(104 * mib)
	if err := modest.Take(20 << 10); err != nil {
		t.Errorf("a small request of one who holds nothing: %v", err)
	}
	if err := greedy.Take(20 << 10); !errors.Is(err, ErrFull) {
		t.Errorf("the same of one who holds much: %v", err)
	}
	if _, err := fill(modest, 20<<10); !errors.Is(err, ErrFull) || modest.owner.used.Load() > 128*mib/512 {
		t.Errorf("it has %d bytes, then: %v", modest.owner.used.Load(), err)
	}
	b.uncharged.Store(128 * mib)
	if err := early(b).Take(1); !errors.Is(err, ErrFull) {
		t.Errorf("with an eighth overdrawn: %v", err)
	}
}
