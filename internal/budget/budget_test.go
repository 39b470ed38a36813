package budget

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const mib = 1 << 20

func open(t *testing.T, b *Budget, principal string) *Account {
	t.Helper()
	a, err := b.Open(principal)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fill takes in steps until it is refused, and returns how much that was.
func fill(a *Account, step int) (taken int, err error) {
	for {
		if err = a.Take(step); err != nil {
			return taken, err
		}
		taken += step
	}
}

func TestAGreedySessionLeavesRoomForOthers(t *testing.T) {
	for principal, want := range map[string]int{"": 45, "p": 30} {
		b := New(90 * mib)
		greedy, modest := open(t, b, principal), open(t, b, principal)
		taken, err := fill(greedy, mib)
		if taken != want*mib || !errors.Is(err, ErrShare) {
			t.Errorf("%q: a greedy session takes %d MiB of 90, then: %v", principal, taken/mib, err)
		}
		if err := modest.Take(5 * mib); err != nil {
			t.Errorf("%q: a modest session of the same principal: %v", principal, err)
		}
		if !greedy.Tight() || modest.Tight() {
			t.Errorf("%q: it is the greedy session that is to let go of what it need not have", principal)
		}
		if b.Refused() != 1 {
			t.Errorf("%d refusals counted", b.Refused())
		}
	}
}

func TestAPrincipalWithManySessionsGetsHalf(t *testing.T) {
	b := New(128 * mib)
	taken := 0
	for range 1000 {
		n, _ := fill(open(t, b, "greedy"), 64<<10)
		taken += n
	}
	if taken > 72*mib || taken < 56*mib { // half, and a sixteenth by those that hold next to nothing
		t.Errorf("1000 sessions of one principal take %d MiB of 128", taken/mib)
	}
	if err := open(t, b, "modest").Take(16 * mib); err != nil {
		t.Errorf("somebody else: %v", err)
	}
}

func TestNewcomersAreRefusedBeforeWhoeverIsThere(t *testing.T) {
	b := New(80 * mib)
	modest := open(t, b, "modest")
	for i := range 20 {
		a, err := b.Open(fmt.Sprint("greedy", i))
		if err == nil {
			_, _ = fill(a, mib)
		}
	}
	if _, err := b.Open("new"); !errors.Is(err, ErrFull) || !b.Full() {
		t.Errorf("a newcomer: %v", err)
	}
	if err := modest.Take(2 * mib); err != nil {
		t.Errorf("one who is there: %v", err)
	}
	if _, err := fill(modest, mib); !errors.Is(err, ErrFull) {
		t.Errorf("when little is left: %v", err)
	}
}

func TestWhatIsAliveBeyondTheChargesCounts(t *testing.T) {
	b := New(80 * mib)
	b.uncharged.Store(75 * mib)
	if _, err := b.Open(""); !errors.Is(err, ErrFull) {
		t.Errorf("with 75 of 80 MiB alive: %v", err)
	}
}

func TestWatchSeesWhatNobodyCharged(t *testing.T) {
	b := New(1 << 40)
	b.Watch()
	ballast := make([]byte, 64*mib)
	for range 1000 { // the finalizer runs in a goroutine of its own
		runtime.GC()
		if b.Used() >= 64*mib {
			runtime.KeepAlive(ballast)
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d bytes seen", b.Used())
}

// What was let go no longer counts when that would have somebody refused: nothing else may
// give the collector a reason to look for a long time.
func TestNobodyIsRefusedForWhatWasLetGo(t *testing.T) {
	b := New(128 * mib)
	b.watched.Store(true) // as Watch does; its finalizers would come in between
	a := open(t, b, "p")
	b.uncharged.Store(127 * mib) // of a flood that is over
	if err := a.Take(mib); err != nil {
		t.Errorf("one who is there: %v", err)
	}
	b.uncharged.Store(127 * mib)
	if err := a.Take(mib); !errors.Is(err, ErrFull) {
		t.Errorf("a moment after the last look: %v", err)
	}
	b.look.Store(0)
	if _, err := b.Open("q"); err != nil {
		t.Errorf("a newcomer: %v", err)
	}
}

// A collection in the middle of a flood takes seconds, of which it works for little.
func TestAfterAFloodSomebodyLooksSoon(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond:       time.Second,
		200 * time.Millisecond: 2 * time.Second,
		5 * time.Second:        3 * time.Second,
	} {
		if got := untilNextLook(took); got != want {
			t.Errorf("after one of %v the next is %v off", took, got)
		}
	}
}

// early is an account of one who came before there was so little left.
func early(b *Budget) *Account { return new(Account).of(b, b.join("another")) }

func TestAClosedAccountHasGivenEverythingBack(t *testing.T) {
	b := New(90 * mib)
	a := open(t, b, "p")
	hold := On(a)
	if err := hold.Grow(mib); err != nil {
		t.Fatal(err)
	}
	a.Close()
	a.Close()
	hold.Release()
	hold.Release()
	a.Charge(5)
	if b.Used() != 0 || len(b.principals) != 0 {
		t.Errorf("%d bytes, %d principals are left", b.Used(), len(b.principals))
	}
}

func TestAGuestIsForgottenWithItsLastRequest(t *testing.T) {
	b := New(90 * mib)
	first, second := On(b.Guest("p")), On(b.Guest("p"))
	_, _ = first.Grow(1), second.Grow(2)
	session := open(t, b, "p")
	if outlives := session.Guest(); outlives != b.Guest("p") {
		t.Error("a session's guest is another one")
	}
	session.Close()
	first.Release()
	if b.Used() != 2 || len(b.principals) != 1 {
		t.Errorf("%d bytes, %d principals while a request is under way", b.Used(), len(b.principals))
	}
	second.Release()
	if b.Used() != 0 || len(b.principals) != 0 {
		t.Errorf("%d bytes, %d principals are left", b.Used(), len(b.principals))
	}
}

// Those to whom nothing could be charged are forgotten, too: there may be a great many addresses.
func TestAGuestWhoIsRefusedIsForgotten(t *testing.T) {
	b := New(mib)
	full := On(b.Guest("greedy"))
	full.Charge(2 * mib)
	for i := range 100 {
		stranger := On(b.Guest(strconv.Itoa(i)))
		if stranger.Grow(1000) == nil {
			t.Fatal("a stranger is let in")
		}
		stranger.Release()
	}
	if len(b.principals) != 1 {
		t.Errorf("%d principals, want the one that holds something", len(b.principals))
	}
	full.Release()
}

func TestWithoutABudgetNothingIsRefused(t *testing.T) {
	var b *Budget
	a, err := b.Open("p")
	hold := On(a)
	if err != nil || hold.Grow(1<<62) != nil || hold.Set(1<<62) != nil || b.Full() || a.Tight() {
		t.Error("refused without a budget")
	}
	hold.Release()
	a.Close()
	if b.Guest("p") != nil || a.Guest() != nil {
		t.Error("accounts without a budget")
	}
}

func TestWhoHoldsTooMuchMayBorrowALittle(t *testing.T) {
	b := New(80 * mib)
	greedy := open(t, b, "")
	_, _ = fill(greedy, mib)
	hold := On(greedy)
	if err := hold.Borrow(mib); err != nil || !errors.Is(hold.Judge(), ErrShare) {
		t.Errorf("borrowing: %v, judged: %v", err, hold.Judge())
	}
	hold.Release()
	if err := hold.Judge(); err != nil {
		t.Errorf("what was borrowed is back: %v", err)
	}
	b.uncharged.Store(35 * mib)
	if err := hold.Borrow(mib); !errors.Is(err, ErrFull) {
		t.Errorf("nothing can be lent: %v", err)
	}
}

// What is lent is a little of the memory, however many borrow for one principal.
func TestWhatIsLentToAPrincipalIsBounded(t *testing.T) {
	b := New(128 * mib)
	var borrowed []Hold
	for i := range 20_000 {
		hold := On(b.Guest("address"))
		if i%2 == 0 {
			hold = On(open(t, b, "address"))
		}
		if hold.Borrow(64<<10) == nil {
			borrowed = append(borrowed, hold)
		}
	}
	if used := b.Used(); used < 64*mib || used > 80*mib {
		t.Errorf("one principal borrows %d MiB of 128", used/mib)
	}
	if modest := open(t, b, "other"); modest.Take(mib) != nil {
		t.Error("another principal is refused")
	}
	hold := On(open(t, b, "address"))
	if err := hold.Borrow(64 << 10); !errors.Is(err, ErrShare) {
		t.Errorf("one more: %v", err)
	}
	for i := range borrowed {
		moved := borrowed[i].Move()
		if account := moved.Account(); account != b.Guest("address") {
			account.Move("elsewhere") // with what it holds
		}
		moved.Release()
		borrowed[i].Release()
	}
	if used := b.Used(); used != mib {
		t.Errorf("%d bytes are left", used-mib)
	}
	for name, p := range b.principals {
		if lent := p.lent.Load(); lent != 0 {
			t.Errorf("%d bytes are still lent to %q", lent, name)
		}
	}
	if err := hold.Borrow(64 << 10); err != nil {
		t.Errorf("when all is back: %v", err)
	}
}

// Whatever happens in whatever order, the sums are those of the accounts, and nothing
// that was refused was charged.
func TestSumsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(1000)
		accounts := map[int]*Account{}
		holds := map[int]*Hold{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 4).Draw(t, "who")
			if accounts[i] == nil {
				if a, err := b.Open(fmt.Sprint(i % 3)); err == nil {
					h := On(a)
					accounts[i], holds[i] = a, &h
				}
				continue
			}
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 5:
				_ = holds[i].Borrow(rapid.IntRange(0, 10).Draw(t, "a little"))
			case 0, 1:
				_ = holds[i].Grow(rapid.IntRange(0, 300).Draw(t, "more"))
			case 2:
				_ = holds[i].Set(rapid.IntRange(0, 300).Draw(t, "now"))
			case 3:
				holds[i].Release()
			case 4:
				accounts[i].Close()
				delete(accounts, i)
			}
			sum := int64(0)
			for i := range accounts {
				sum += int64(holds[i].bytes)
			}
			if b.Used() != sum || sum > 1000 {
				t.Fatalf("%d bytes are charged, %d held", b.Used(), sum)
			}
		}
	})
}

func TestAccountsAreForManyAtOnce(t *testing.T) {
	b := New(1 << 30)
	a := open(t, b, "p")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				own, guest := On(a), On(b.Guest("p"))
				if own.Grow(10) != nil || guest.Grow(20) != nil {
					t.Error("refused")
				}
				own.Release()
				guest.Release()
			}
		})
	}
	wg.Wait()
	a.Close()
	if b.Used() != 0 || len(b.principals) != 0 {
		t.Errorf("%d bytes, %d principals are left", b.Used(), len(b.principals))
	}
}

func TestSessionsAreCountedForTheirPrincipal(t *testing.T) {
	b := New(1 << 20)
	first, second, unknown := open(t, b, "p"), open(t, b, "p"), open(t, b, "")
	_ = open(t, b, "")
	if n := first.Sessions(); n != 2 {
		t.Errorf("%d sessions of two", n)
	}
	second.Move("q")
	first.Close()
	if n := second.Sessions(); n != 1 {
		t.Errorf("%d sessions where one moved to", n)
	}
	if n, none := unknown.Sessions(), (*Account)(nil).Sessions(); n != 1 || none != 1 {
		t.Errorf("%d and %d sessions of nobody", n, none)
	}
}
