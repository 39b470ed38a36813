package flight

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// What has come in already counts while it waits for room, and does not take that from itself.
func TestAResponseThatIsThereCountsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		memory := budget.New(16 << 20)
		account, other := memory.Guest("alice"), memory.Own()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait := func() (done chan error) {
			held, paid := new(Held), budget.On(account)
			held.Open(account)
			owed := Owe(held, ctx, nil, "alice", takes)
			paid.Charge(size)
			done = make(chan error, 1)
			go func() {
				done <- owed.TakeOver(&paid, size)
				held.End()
			}()
			return done
		}
		other.Charge(24 << 20) // not even half as much again is left
		done := wait()
		time.Sleep(time.Minute)
		if used := memory.Used(); used != 24<<20+size {
			t.Errorf("%d bytes are charged while it waits", used)
		}
		other.Give(2 << 20) // twice it
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("it waits for what it is charged with itself")
		}
		other.Charge(2 << 20)
		done = wait()
		cancel()
		if err := <-done; !budget.Short(err) {
			t.Errorf("when its round is over: %v", err)
		}
		synctest.Wait()
		if used := memory.Used(); used != 24<<20 {
			t.Errorf("%d bytes are left charged", used-24<<20)
		}
	})
}

// Each fits by itself, and not beside what the other takes while it waits.
func TestAnswersThatAreThereDoNotWaitForEachOther(t *testing.T) {
	const size = 900 << 10
	memory := budget.New(8 << 20)
	memory.Own().Charge(8 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what waits is refused
	var paid [2]budget.Hold
	var helds [2]Held
	for i, who := range []string{"alice", "bob"} {
		paid[i] = budget.On(memory.Guest(who))
		paid[i].Owe(size)
	}
	for i, who := range []string{"alice", "bob"} {
		helds[i].Open(memory.Guest(who))
		owed := Owe(&helds[i], ctx, nil, who, takes)
		if err := owed.TakeOver(&paid[i], size); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
	for i := range helds {
		helds[i].End()
	}
	if used := memory.Used(); used != 8<<20 {
		t.Errorf("%d bytes are left charged", used-8<<20)
	}
}

// Who needs no more memory, or waits for its client, keeps nobody from having more than there is.
func TestOthersAreAloneOnceACallHasItsAnswer(t *testing.T) {
	for name, over := range map[string]func(*Held) error{
		"it has ended":            func(h *Held) error { h.End(); return nil },
		"its answer is made":      func(h *Held) error { h.Made(); return nil },
		"it waits for its client": func(h *Held) error { return h.keep(1<<10, true) },
	} {
		memory := budget.New(8 << 20)
		memory.Own().Charge(8 << 20)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what waits is refused
		press := func(who string) (*Held, error) {
			held := new(Held)
			held.Open(memory.Guest(who))
			owed := Owe(held, ctx, nil, who, takes)
			return held, owed.Set(64 << 10)
		}
		first, err := press("alice")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = press("bob"); err == nil {
			t.Errorf("%s: two are alone", name)
		}
		if err = over(first); err != nil {
			t.Error(err)
		}
		if _, err = press("carol"); err != nil {
			t.Errorf("though %s: %v", name, err)
		}
	}
}

// What does not fit even so is not waited for by what would.
func TestAResponseThatCannotFitKeepsNoneWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(64 << 20)
		memory.Own().Charge(64 << 20) // full; a quarter, 16 MiB, may be pressed
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := func(who string, size int) chan error {
			held := new(Held)
			held.Open(memory.Guest(who))
			owed := Owe(held, ctx, nil, who, takes)
			done := make(chan error, 1)
			go func() {
				err := owed.Set(size)
				done <- err
				if err == nil {
					held.End()
				}
			}()
			return done
		}
		big := start("big", 9<<20) // takes 18 MiB, above the quarter
		time.Sleep(time.Second)
		small := start("small", 1<<20) // takes 2 MiB
		time.Sleep(5 * time.Minute)
		select {
		case err := <-small:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("a response of 1 MiB has waited for 5 minutes for one that does not fit")
		}
		cancel()
		<-big
	})
}

// TestAnsweredCallsOfOneAddressKeepNobodyOut: whoever holds next to nothing, and newcomers, find memory throughout, and each call gets its result,
// whether its size is known as it comes or not. What came stays until its client has taken it.
func TestAnsweredCallsOfOneAddressKeepNobodyOut(t *testing.T) {
	const most = 15 << 20
	for name, step := range map[string]int{"as a whole": most, "in parts": 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(128 << 20)
			open := func(who string) *budget.Account {
				account, err := memory.Open(who)
				if err != nil {
					t.Fatal(err)
				}
				return account
			}
			small := open("small")
			places := budget.NewPlaces(Overdrafts)
			served := make(chan error, 24)
			for range cap(served) {
				held := new(Held)
				held.Open(open("greedy"))
				owed := Owe(held, t.Context(), places, "greedy", takes)
				go func() {
					for size := step; size <= most; size += step {
						time.Sleep(time.Millisecond)
						if err := owed.Set(size); err != nil {
							served <- err
							return
						}
					}
					owed.Over()
					held.Made()
					time.Sleep(100 * time.Millisecond)
					held.End()
					served <- nil
				}()
			}
			refused, full := 0, 0
			for range 10_000 {
				time.Sleep(time.Millisecond)
				if small.Take(20<<10) != nil {
					refused++
				} else {
					small.Give(20 << 10)
				}
				if memory.Full() {
					full++
				}
			}
			if refused > 0 || full > 0 {
				t.Errorf("%s: of 10000 times who holds next to nothing is refused %d times, and a newcomer %d times", name, refused, full)
			}
			for len(served) > 0 {
				if err := <-served; err != nil {
					t.Errorf("%s: a call is not served: %v", name, err)
				}
			}
			if memory.Used() != 0 {
				t.Errorf("%s: after ten seconds %d MiB are held", name, memory.Used()>>20)
			}
		})
	}
}

// client is there to take its answer, or is not.
type client struct{ atomic.Bool }

func (c *client) Attached() bool { return c.Load() }

// takes is a client that is there.
var takes = func() *client {
	c := new(client)
	c.Store(true)
	return c
}()

// TestAnswersThatNobodyTakesLeaveRoomForOthers: what one address does not fetch is kept for long, and is no more than leaves others room,
// be it in memory before it is asked for or not. Once its client is there the rest comes.
func TestAnswersThatNobodyTakesLeaveRoomForOthers(t *testing.T) {
	for name, inMemory := range map[string]bool{"read as there is room": false, "read already": true} {
		synctest.Test(t, func(t *testing.T) {
			const size = 10 << 20
			memory := budget.New(128 << 20)
			var there client
			var all sync.WaitGroup
			places := budget.NewPlaces(Overdrafts)
			kept := make(chan *Held, 12)
			session, err := memory.Open("greedy")
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			for range cap(kept) {
				held, paid := new(Held), budget.On(memory.Guest("greedy"))
				held.Open(memory.Guest("greedy"))
				owed := Owe(held, t.Context(), places, "greedy", &there)
				all.Go(func() {
					if inMemory {
						paid.Charge(size / 10)
					}
					if err := owed.TakeOver(&paid, size); err != nil {
						t.Error(err)
					}
					owed.Over()
					held.Made()
					if there.Load() {
						held.End()
					} else {
						kept <- held
					}
				})
			}
			time.Sleep(time.Minute)
			if n := len(kept); n == 0 || n == cap(kept) || memory.Full() {
				t.Errorf("%s: %d of %d are kept, %d MiB of 128 are held", name, n, cap(kept), memory.Used()>>20)
			}
			there.Store(true)
			for len(kept) > 0 { // its client fetches one after the other
				(<-kept).End()
				time.Sleep(time.Second)
			}
			all.Wait()
			if memory.Used() != 0 {
				t.Errorf("%s: %d bytes are held at the end", name, memory.Used())
			}
		})
	}
}

// TestTheResponseOfAnAnswerDoesNotWaitForPeople: calls whose questions nobody has answered hold memory, and do not end by themselves.
func TestTheResponseOfAnAnswerDoesNotWaitForPeople(t *testing.T) {
	for name, places := range map[string]*budget.Places{"with an overdraft": budget.NewPlaces(Overdrafts), "without": nil} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(64 << 20)
			memory.Own().Charge(20 << 20) // what others have
			account := memory.Guest("address")
			suspended, held := new(Held), new(Held)
			suspended.Open(account)
			if err := suspended.keep(24<<20, true); err != nil {
				t.Fatal(err)
			}
			defer suspended.End()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			held.Open(account)
			defer held.End()
			owed := Owe(held, ctx, places, "address", takes)
			if err := owed.Set(8 << 20); err != nil { // 16 MiB in memory, and 20 are free
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
