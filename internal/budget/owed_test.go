package budget

import (
	"sync"
	"testing"
)

func TestWhatIsAdvancedLeavesRoomForOneThatPressesAndForNewcomers(t *testing.T) {
	b := New(64 * mib)
	h := On(open(t, b, "address"))
	for h.Advance(mib) == nil {
	}
	if h.Bytes() != 40*mib {
		t.Errorf("%d MiB of 64 are advanced", h.Bytes()/mib)
	}
	var alone Alone
	pressing := On(open(t, b, "another"))
	if err := alone.PressLast(&pressing, 16*mib, false); err != nil || b.Full() {
		t.Errorf("one that presses: %v; newcomers are refused: %v", err, b.Full())
	}
}

func TestWhoNeedsOnlyWaitForItsOwnDoesNotPress(t *testing.T) {
	for name, is := range map[string]struct {
		moving, resting, others, size int
		want                          bool
	}{
		"what leaves room for newcomers":                  {40 * mib, 0, 0, 16 * mib, true},
		"what does not":                                   {50 * mib, 0, 0, 8 * mib, false},
		"of who holds little":                             {20 * mib, 0, 40 * mib, 16 * mib, true},
		"of who has little under way":                     {7 * mib, 50 * mib, 0, 16 * mib, true},
		"of who has much under way":                       {24 * mib, 0, 36 * mib, 16 * mib, false},
		"of who has nothing under way that goes on":       {0, 60 * mib, 0, 16 * mib, true},
		"of who has nothing under way that goes on, less": {4 * mib, 30 * mib, 30 * mib, 16 * mib, true},
	} {
		for _, owner := range []string{"address", ""} {
			b := New(64 * mib)
			b.Own().Charge(is.others)
			a := open(t, b, owner)
			waits, moves, h := On(a), On(a), On(a)
			waits.Charge(is.resting)
			moves.Charge(is.moving)
			moves.Moves(is.moving)
			var alone Alone
			if err := alone.PressLast(&h, is.size, false); err == nil != is.want || err != nil && !Short(err) {
				t.Errorf("%s, of %q: %v", name, owner, err)
			}
			alone.End()
			h.Release()
			waits.Release()
			if moves.Release(); a.moving() != 0 {
				t.Errorf("%s, of %q: %d bytes move afterwards", name, owner, a.moving())
			}
		}
	}
}

// What a call itself holds is no reason for it to wait.
func TestWhatPressesDoesNotWaitForItself(t *testing.T) {
	b := New(64 * mib)
	h := On(open(t, b, "address"))
	h.Charge(60 * mib)
	var alone Alone
	for _, rest := range []func(){func() { h.Moves(60 * mib) }, h.Stays} {
		if rest(); alone.PressLast(&h, mib, false) != nil {
			t.Error("it is refused")
		}
	}
}

func TestWhatMovesGoesWithItsSession(t *testing.T) {
	b := New(64 * mib)
	a, from, to := open(t, b, "before"), open(t, b, "before"), open(t, b, "after")
	h := On(a)
	h.Charge(30 * mib)
	h.Moves(30 * mib)
	a.Move("after")
	if from.moving() != 0 || to.moving() != 30*mib {
		t.Errorf("%d bytes move of whose it was, %d of whose it is", from.moving(), to.moving())
	}
	if h.Set(20*mib) != nil || to.moving() != 20*mib {
		t.Errorf("%d bytes move of 20 MiB", to.moving())
	}
	a.Close()
	if h.Release(); to.moving() != 0 {
		t.Errorf("%d bytes move of whose it was", to.moving())
	}
}

// TestTwoDoNotFindTheSameRoom: what may be large is looked at and charged at once, or as many as there are processors each find what only
// one of them may have.
func TestTwoDoNotFindTheSameRoom(t *testing.T) {
	const each = 30 * mib
	press := func(h *Hold) {
		var alone Alone
		if h.Moves(each); alone.PressLast(h, each, false) != nil {
			h.Stays()
		}
		alone.End()
	}
	for name, is := range map[string]struct {
		take func(*Hold)
		most int64
	}{
		"shares":      {func(h *Hold) { _ = h.Grow(each) }, each},
		"advances":    {func(h *Hold) { _ = h.Advance(each) }, 2 * each},
		"what is due": {press, 3 * each},
	} {
		for range 3000 {
			b := New(128 * mib)
			var ready, all sync.WaitGroup
			ready.Add(4)
			for range 4 {
				h := On(b.Guest("greedy"))
				all.Go(func() {
					ready.Done()
					ready.Wait()
					is.take(&h)
				})
			}
			all.Wait()
			if b.Used() > is.most {
				t.Fatalf("%s of 30 MiB: %d MiB of 128 are taken", name, b.Used()/mib)
			}
		}
	}
}
