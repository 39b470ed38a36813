package budget

import "testing"

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
