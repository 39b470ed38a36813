package budget

import (
	"errors"
	"slices"
	"testing"
)

// kept is something of a budget that may be given back.
type kept struct {
	name   string
	spare  Spare
	hold   Hold
	inUse  bool
	busy   bool
	forgot *[]string
}

func (k *kept) GiveBack() (given, busy bool) {
	if k.inUse || k.busy {
		return false, k.busy
	}
	k.hold.Release()
	*k.forgot = append(*k.forgot, k.name)
	return true, false
}

// keeper keeps things, and notes which were forgotten.
type keeper struct{ forgot []string }

func (f *keeper) keep(a *Account, name string, bytes int) *kept {
	k := &kept{name: name, hold: On(a), forgot: &f.forgot}
	k.hold.Charge(bytes)
	k.spare = a.Spare(k)
	k.spare.Offer(a, bytes)
	k.spare.Offer(a, bytes)
	return k
}

func TestBeforeANewcomerIsRefusedTheOldestIsGivenBack(t *testing.T) {
	b := New(80 * mib)
	var f keeper
	f.keep(open(t, b, "one"), "first", 25*mib)
	f.keep(open(t, b, "another"), "second", 25*mib)
	f.keep(open(t, b, "third"), "third", 25*mib)
	if _, err := b.Open("new"); err != nil || b.Refused() != 0 {
		t.Errorf("a newcomer: %v, %d refusals counted", err, b.Refused())
	}
	if want := []string{"first"}; !slices.Equal(f.forgot, want) {
		t.Errorf("given back: %q", f.forgot)
	}
	if err := open(t, b, "modest").Take(14 * mib); err != nil {
		t.Errorf("one who takes more than its share of what is free: %v", err)
	}
	if want := []string{"first", "second"}; !slices.Equal(f.forgot, want) {
		t.Errorf("given back: %q", f.forgot)
	}
}

// While there is memory for everybody else, who holds too much gives back what is its own.
func TestWhoHoldsTooMuchGivesBackItsOwn(t *testing.T) {
	b := New(100 * mib)
	var f keeper
	f.keep(open(t, b, "another"), "another's", 5*mib)
	greedy := open(t, b, "greedy")
	f.keep(greedy, "old", 10*mib)
	f.keep(greedy, "new", 10*mib)
	greedy.Charge(10 * mib)
	if err := greedy.Take(5 * mib); err != nil {
		t.Error(err)
	}
	if want := []string{"old"}; !slices.Equal(f.forgot, want) {
		t.Errorf("given back: %q", f.forgot)
	}
	if err := greedy.Take(40 * mib); !errors.Is(err, ErrShare) {
		t.Errorf("what it could not have without others': %v", err)
	}
	if want := []string{"old", "new"}; !slices.Equal(f.forgot, want) {
		t.Errorf("given back: %q", f.forgot)
	}
}

func TestWhatIsNeededAgainIsNotGivenBack(t *testing.T) {
	b := New(80 * mib)
	var f keeper
	a := open(t, b, "one")
	f.keep(a, "in use", 20*mib).inUse = true
	f.keep(a, "withdrawn", 20*mib).spare.Withdraw()
	f.keep(a, "busy", 20*mib).busy = true
	if f.keep(a, "spare", 16*mib); b.Full() != true {
		t.Error("there is room")
	}
	if _, err := b.Open("new"); err != nil {
		t.Error(err)
	}
	if want := []string{"spare"}; !slices.Equal(f.forgot, want) {
		t.Errorf("given back: %q", f.forgot)
	}
	a.Charge(16 * mib)
	if _, err := b.Open("new"); !errors.Is(err, ErrFull) {
		t.Errorf("with nothing left to give back: %v", err)
	}
}

// In whatever order things come and go, the queues have those that are offered, oldest first.
func TestSparesAreQueuedInTheirOrder(t *testing.T) {
	b := New(mib)
	var f keeper
	a := b.Guest("p")
	var all []*kept
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, f.keep(a, name, 1))
	}
	for _, i := range []int{2, 0, 4, 4} {
		all[i].spare.Withdraw()
	}
	all[2].spare.Offer(a, 1)
	var got []string
	for s := b.spares.oldest(nil); s != nil; s = b.spares.oldest(nil) {
		got = append(got, s.giver.(*kept).name)
	}
	if want := []string{"b", "d", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if b.spares.oldest(a) != nil {
		t.Error("the principal has some left")
	}
	new(Spare).Offer(a, 1)
	(*Spare)(nil).Withdraw()
}

// TestWhoIsRefusedAllTheSameForgetsNobodyElses: one that asks for too much, and a stream that holds too much already.
func TestWhoIsRefusedAllTheSameForgetsNobodyElses(t *testing.T) {
	for what, refused := range map[string]func(greedy *Account) bool{
		"one that asks": func(greedy *Account) bool {
			greedy.Charge(60 * mib)
			return errors.Is(greedy.Take(30*mib), ErrFull)
		},
		"one that holds": func(greedy *Account) bool {
			greedy.Charge(84 * mib)
			return greedy.StillTight()
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := New(100 * mib)
			var f keeper
			f.keep(open(t, b, "another"), "another's", 5*mib)
			if !refused(open(t, b, "greedy")) {
				t.Fatal("it is not refused")
			}
			if len(f.forgot) != 0 {
				t.Errorf("given back in vain: %q", f.forgot)
			}
		})
	}
}

// More than there is may be pressed or finished: who holds next to nothing may overdraw as much as ever once others' are given back.
func TestWhoHoldsNextToNothingIsTakenInWhereOthersHaveSpares(t *testing.T) {
	b := New(512 * mib)
	var f keeper
	f.keep(open(t, b, "another"), "another's", 128*mib)
	modest := open(t, b, "modest")
	open(t, b, "owed").Charge(500 * mib)
	if err := modest.Take(1000); err != nil {
		t.Errorf("with nothing free: %v; given back: %q", err, f.forgot)
	}

	b = New(512 * mib)
	f.keep(open(t, b, "another"), "another's", 160*mib)
	second := open(t, b, "greedy")
	open(t, b, "greedy").Charge(280 * mib)
	open(t, b, "third").Charge(15 * mib)
	if err := second.Take(1000); err != nil {
		t.Errorf("a session of a greedy principal: %v; given back: %q", err, f.forgot)
	}
}

// "" is no principal that its sessions have in common.
func TestSparesOfSessionsThatAreNobodysAreNotEachOthers(t *testing.T) {
	b := New(100 * mib)
	var f keeper
	f.keep(open(t, b, ""), "another's", 5*mib)
	a := open(t, b, "")
	f.keep(a, "own", 5*mib)
	if a.Take(200*mib) == nil {
		t.Fatal("it was taken in")
	}
	if want := []string{"own"}; !slices.Equal(f.forgot, want) {
		t.Errorf("given back: %q", f.forgot)
	}
}

func TestSparesAreOfWhomTheirSessionIsOf(t *testing.T) {
	for _, before := range []string{"before", ""} {
		b := New(100 * mib)
		var f keeper
		stays := open(t, b, before)
		f.keep(stays, "of one that stays", 3*mib)
		moves := open(t, b, before)
		f.keep(moves, "own 1", 10*mib)
		f.keep(moves, "own 2", 10*mib)
		moves.Move("after")
		moves.Move("after")
		f.keep(open(t, b, "another"), "another's", 2*mib)
		if stays.Take(200*mib) == nil {
			t.Fatal("it was taken in")
		}
		if want := []string{"of one that stays"}; !slices.Equal(f.forgot, want) {
			t.Errorf("of %q, to who stayed were given back: %q", before, f.forgot)
		}
		second := open(t, b, "after")
		second.Charge(10 * mib)
		if err := second.Take(10 * mib); err != nil {
			t.Error(err)
		}
		if want := []string{"of one that stays", "own 1"}; !slices.Equal(f.forgot, want) {
			t.Errorf("of %q, to whom it came were given back: %q", before, f.forgot)
		}
		moves.Close()
		left := 0
		for b.spares.oldest(nil) != nil {
			left++
		}
		if left != 2 {
			t.Errorf("%d are left", left)
		}
	}
}
