package rates

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// admitted returns how many of n requests pass.
func admitted(l *Limiter, s Sender, n int) (passed int) {
	for range n {
		if _, ok := l.Admit(s, 1); ok {
			passed++
		}
	}
	return passed
}

func TestEachKindOfSenderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Rate{PerSecond: 2, Burst: 4}
		for name, l := range map[string]*Limiter{
			"session": New(Options{Session: r}), "principal": New(Options{Principal: r}), "address": New(Options{Address: r}),
		} {
			s := Sender{"s", "p", "a", ""}
			if got := admitted(l, s, 10); got != 4 {
				t.Errorf("%s: %d of 10 pass at once", name, got)
			}
			if again, ok := l.Admit(s, 1); ok || again != time.Second {
				t.Errorf("%s: again after %v, %v", name, again, ok)
			}
			time.Sleep(time.Second)
			if got := admitted(l, s, 10); got != 2 {
				t.Errorf("%s: %d pass a second later", name, got)
			}
			if got := admitted(l, Sender{"other", "other", "other", ""}, 1); got != 1 {
				t.Errorf("%s: somebody else is refused", name)
			}
		}
	})
}

func TestWhatIsRefusedCountsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Session: Rate{1, 10}, Address: Rate{1, 2}})
		if got := admitted(l, Sender{Session: "s", Address: "a"}, 10); got != 2 {
			t.Errorf("%d pass", got)
		}
		if got := admitted(l, Sender{Session: "s", Address: "another"}, 2); got != 2 {
			t.Errorf("%d pass from elsewhere", got)
		}
		if got := admitted(l, Sender{Session: "s"}, 10); got != 6 {
			t.Errorf("%d are left to the session", got)
		}
	})
}

func TestATierMultipliesTheRatesOfSessionAndPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Principal: Rate{1, 2}, Address: Rate{1, 100}, Factor: map[string]float64{"gold": 3, "free": .1}})
		for tier, want := range map[string]int{"gold": 6, "": 2, "unknown": 2, "free": 1} {
			if got := admitted(l, Sender{Principal: "of " + tier, Address: "a", Tier: tier}, 10); got != want {
				t.Errorf("%q: %d pass, want %d", tier, got, want)
			}
		}
	})
}

// More requests together than may come at once pass when the bucket is full, and leave a debt.
func TestAnArrayLargerThanTheBurstIsServedAndCountsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Rate{PerSecond: 1, Burst: 2}
		tier := map[string]float64{"gold": 2}
		for name, l := range map[string]*Limiter{
			"session": New(Options{Session: r, Factor: tier}), "principal": New(Options{Principal: r, Factor: tier}), "address": New(Options{Address: r, Factor: tier}),
		} {
			s := Sender{"s", "p", "a", ""}
			if _, ok := l.Admit(s, 50); !ok {
				t.Errorf("%s: it would never pass", name)
			}
			if again, ok := l.Admit(s, 1); ok || again != 49*time.Second {
				t.Errorf("%s: one more after %v, %v", name, again, ok)
			}
			if again, ok := l.Admit(s, 50); ok || again != 50*time.Second {
				t.Errorf("%s: another array after %v, %v", name, again, ok)
			}
			time.Sleep(49 * time.Second)
			if got := admitted(l, s, 3); got != 1 {
				t.Errorf("%s: %d pass when the debt is paid", name, got)
			}
		}
		gold := Sender{Session: "s", Tier: "gold"}
		l := New(Options{Session: r, Factor: tier})
		l.Admit(gold, 50)
		if again, ok := l.Admit(gold, 1); ok || again != 23500*time.Millisecond {
			t.Errorf("gold: one more after %v, %v", again, ok)
		}
	})
}

// However it is cut into arrays, what passes is the rate.
func TestArraysAndSingleRequestsHaveTheSameAverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{1, 2, 5, 64} {
			l := New(Options{Session: Rate{PerSecond: 4, Burst: 4}})
			passed := 0
			for range 4 * 600 {
				if _, ok := l.Admit(Sender{Session: "s"}, size); ok {
					passed += size
				}
				time.Sleep(time.Second / 4)
			}
			if passed > 4*600+64 || passed < 4*600-64 {
				t.Errorf("arrays of %d: %d pass in 600 s", size, passed)
			}
		}
	})
}

// An array that one rate refuses leaves no debt with another one.
func TestARefusedArrayOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Session: Rate{1, 10}, Address: Rate{1, 10}})
		l.Admit(Sender{Address: "a"}, 1)
		if _, ok := l.Admit(Sender{Session: "s", Address: "a"}, 64); ok {
			t.Error("it passes beyond the rate of its address")
		}
		if got := admitted(l, Sender{Session: "s"}, 20); got != 10 {
			t.Errorf("%d are left to the session", got)
		}
	})
}

func TestTheTableIsBounded(t *testing.T) {
	l := New(Options{Address: Rate{1, 1}})
	for i := range 2 * remembered {
		l.Admit(Sender{Address: fmt.Sprint(i)}, 1)
	}
	if n := l.tables[2].buckets.Len(); n != remembered {
		t.Errorf("%d addresses are remembered", n)
	}
}

func TestWithoutRatesEverythingPasses(t *testing.T) {
	if _, ok := New(Options{Factor: map[string]float64{"gold": 2}}).Admit(Sender{"s", "p", "a", "gold"}, 1); !ok {
		t.Error("refused")
	}
}

func TestHowManyMayBeUnderWay(t *testing.T) {
	l := New(Options{AtOnce: AtOnce{Principal: 2, Address: 3}, Factor: map[string]float64{"gold": 2}})
	var leave []func()
	enter := func(s Sender, n int, want bool) {
		t.Helper()
		done, ok := l.Enter(s, n)
		if ok != want {
			t.Errorf("%+v: %v", s, ok)
		}
		if ok {
			leave = append(leave, done)
		}
	}
	alice, bob := Sender{Principal: "alice", Address: "1"}, Sender{Principal: "bob", Address: "1"}
	enter(alice, 2, true)
	enter(alice, 1, false) // of its principal
	enter(bob, 2, false)   // from its address, which counts for nothing
	enter(bob, 1, true)
	enter(Sender{Principal: "bob", Address: "2", Tier: "gold"}, 3, true)
	enter(Sender{Principal: "bob", Address: "2", Tier: "gold"}, 1, false)
	enter(Sender{Address: "3"}, 3, true) // nobody in particular
	for _, done := range leave {
		done()
	}
	for i := range l.crowds {
		if len(l.crowds[i].inside) > 0 {
			t.Errorf("left: %v", l.crowds[i].inside)
		}
	}
	var nobody *Limiter
	if done, ok := nobody.Enter(alice, 1000); !ok || done == nil || nobody.FactorOf("gold") != 1 {
		t.Error("the nil limiter bounds")
	}
}
