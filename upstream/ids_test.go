package upstream

import (
	"math/bits"
	"strconv"
	"testing"
)

// Whoever can put a response on somebody else's connection must not know which id to put on
// it, from those of requests before.
func TestIDsOfRequestsCannotBeGuessed(t *testing.T) {
	const drawn = 4096
	seen, ones, last := map[int64]bool{}, 0, int64(0)
	for range drawn {
		id, err := strconv.ParseInt(string(NextID()), 10, 64)
		if err != nil || id < 0 || id >= 1<<53 {
			t.Fatalf("%d is an id that libraries may misread: %v", id, err)
		}
		if seen[id] {
			t.Fatalf("%d comes twice", id)
		}
		seen[id] = true
		ones += bits.OnesCount32(uint32((id ^ last) & (1<<randomBits - 1))) //nolint:gosec // of 32 bits
		last = id
	}
	// Of 32 bits that are drawn half change, give or take: a counter, or a step, changes fewer or the same ones.
	if mean := float64(ones) / drawn; mean < 15.5 || mean > 16.5 {
		t.Errorf("from one id to the next %.2f of 32 bits change", mean)
	}
}
