package flight

import (
	"context"
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
		leave, _ := memory.Alone() // somebody else is the one that may have more
		defer leave()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait := func() (done chan error) {
			held, paid := new(Held), budget.On(account)
			held.Open(account)
			owed := Owe(held, ctx, nil, "alice")
			paid.Charge(size)
			done = make(chan error, 1)
			go func() {
				done <- owed.TakeOver(&paid, size)
				held.End()
			}()
			return done
		}
		other.Charge(16 << 20)
		done := wait()
		time.Sleep(time.Minute)
		if used := memory.Used(); used != 16<<20+size {
			t.Errorf("%d bytes are charged while it waits", used)
		}
		other.Give(6 << 20) // as much as it takes for a principal that has nothing else
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("it waits for what it is charged with itself")
		}
		other.Charge(6 << 20)
		done = wait()
		cancel()
		if err := <-done; !budget.Short(err) {
			t.Errorf("when its round is over: %v", err)
		}
		synctest.Wait()
		if used := memory.Used(); used != 16<<20 {
			t.Errorf("%d bytes are left charged", used-16<<20)
		}
	})
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
			owed := Owe(held, ctx, nil, who)
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
