package vouch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// A reload puts a mount beside the one before, which ends with its last session.
func TestWhatIsLearntOfAServerOutlivesAMount(t *testing.T) {
	s := NewServers(nil, zerolog.Nop())
	before, end := s.Open("a")
	before.Refused("Bearer wrong", tool("guarded"))
	after, endAfter := s.Open("a")
	end()
	end()
	after.Accepted(alice, tool("guarded"))
	if !after.Singled(alice) {
		t.Error("the mount that took its place knows nothing of the refusal")
	}
	if other, endOther := s.Open("b"); other.Guards() {
		t.Error("another server is said to have refused somebody")
	} else {
		endOther()
	}
	endAfter()
	if again, endAgain := s.Open("a"); again.Guards() || s.known.Len() != 1 {
		t.Error("what no mount stands before is not forgotten")
	} else {
		endAgain()
	}
}

// sharing returns what each of several processes with one store knows of a server.
func sharing(kept store.Store, n int) (all []*Credentials, ended []func()) {
	for range n {
		c, end := NewServers(kept, zerolog.Nop()).Open("a")
		all, ended = append(all, c), append(ended, end)
	}
	return all, ended
}

func TestReplicasKnowWhatAServerHasRefusedAtAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := store.NewMemory(9)
		all, ended := sharing(kept, 3)
		synctest.Wait()
		all[0].Refused("Bearer wrong", tool("guarded"))
		synctest.Wait()
		if all[1].Guards() {
			t.Error("it was told of it before it asked")
		}
		if err := all[1].Recall(t.Context()); err != nil || !all[1].Guards() {
			t.Errorf("it asks, and knows nothing: %v", err)
		}
		for i, end := range ended[:2] { // whose news are told at the end, if not before
			all[i].Refused("Bearer wrong", tool(fmt.Sprint("guarded by ", i)))
			all[i].Accepted(alice, tool(fmt.Sprint("guarded by ", i)))
			end()
		}
		time.Sleep(tellEvery)
		synctest.Wait()
		for _, name := range []string{"guarded", "guarded by 0", "guarded by 1"} {
			bob := "Bearer bob-" + strings.ReplaceAll(name, " ", "-")
			all[2].Accepted(bob, tool(name))
			if !all[2].Singled(bob) {
				t.Errorf("%s: who is accepted for what others were refused elsewhere is not known", name)
			}
		}
		all[2].Accepted(mallory, tool("public"))
		if all[2].Vouched(mallory) {
			t.Error("what everybody may vouches for somebody")
		}
		ended[2]()
		next, end := sharing(kept, 1)
		synctest.Wait()
		if !next[0].Guards() {
			t.Error("a process that starts knows nothing of what was refused before")
		}
		end[0]()
	})
}

// A server that refuses to say what it is vouches for whom it gives anything.
func TestReplicasKnowThatAServerGuardsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, ended := sharing(store.NewMemory(9), 2)
		synctest.Wait()
		all[0].Refused("Bearer wrong", Of(mcp.MethodDiscover, nil))
		synctest.Wait()
		_ = all[1].Recall(t.Context())
		all[1].Accepted(alice, tool("any"))
		expect(t, all[1], "at another replica", alice, true)
		for _, end := range ended {
			end()
		}
	})
}

// Whoever likes is refused as many things as they like, of names of any length.
func TestWhatIsToldOfRefusalsIsBounded(t *testing.T) {
	c := New()
	c.Refused("Bearer wrong", tool("guarded"))
	c.Accepted(alice, tool("guarded"))
	for i := range 5 * mostTold {
		c.Refused(mallory, tool(fmt.Sprint(i)))
		c.Refused(mallory, tool(strings.Repeat("x", longestTold+1+i)))
	}
	told := c.tells()
	if len(told.Things) != mostTold || !told.Any {
		t.Errorf("%d are told", len(told.Things))
	}
	if first := told.Things[0]; string(first.Name) != "guarded" || !first.Proven {
		t.Errorf("what somebody was accepted for made room: the first is %q", first.Name)
	}
	for _, one := range told.Things {
		if len(one.Name) > longestTold {
			t.Errorf("a name of %d bytes is told", len(one.Name))
		}
	}
}

// counting is a store that counts what is written, and fails on demand.
type counting struct {
	store.Store
	wrote atomic.Int64
	away  atomic.Bool
}

var errAway = errors.New("away")

func (c *counting) Commit(ctx context.Context, session string, changes ...store.Change) error {
	c.wrote.Add(1)
	if c.away.Load() {
		return errAway
	}
	return c.Store.Commit(ctx, session, changes...)
}

func (c *counting) Load(ctx context.Context, session string) ([]store.Record, error) {
	if c.away.Load() {
		return nil, errAway
	}
	return c.Store.Load(ctx, session)
}

func TestMadeUpThingsHaveLittleWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &counting{Store: store.NewMemory(9)}
		all, ended := sharing(kept, 1)
		for i := range 1000 {
			all[0].Refused(mallory, tool(fmt.Sprint(i)))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		before := kept.wrote.Load()
		if before > 11 {
			t.Errorf("%d times in 10 seconds", before)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := kept.wrote.Load() - before; n > 1 {
			t.Errorf("%d times while nothing happened", n)
		}
		ended[0]()
	})
}

func TestAStoreThatFailsTellsNothingAndIsToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &counting{Store: store.NewMemory(9)}
		kept.away.Store(true)
		all, ended := sharing(kept, 2)
		all[0].Refused("Bearer wrong", tool("guarded"))
		synctest.Wait()
		if all[1].Recall(t.Context()) == nil {
			t.Error("a store that could not be asked is said to know nothing")
		}
		kept.away.Store(false)
		time.Sleep(tellAgain)
		synctest.Wait()
		if err := all[1].Recall(t.Context()); err != nil || !all[1].Guards() {
			t.Errorf("it was not told when it was back: %v", err)
		}
		for _, end := range ended {
			end()
		}
	})
}

// A key is rotated by putting a new one first, and removing the old one later.
func TestWhatWasRefusedOutlivesTheKeyOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, first, second, third := store.NewMemory(9), store.Key{1}, store.Key{2}, store.Key{3}
		run := func(use func(*Credentials), keys ...store.Key) {
			sealed, err := store.NewSealed(inner, keys)
			if err != nil {
				t.Fatal(err)
			}
			all, ended := sharing(sealed, 1)
			synctest.Wait()
			use(all[0])
			ended[0]()
		}
		run(func(c *Credentials) { c.Refused("Bearer wrong", tool("guarded")) }, first)
		run(func(c *Credentials) {}, second, first)
		run(func(c *Credentials) {
			if !c.Guards() {
				t.Error("what the old key sealed is not known under the new one")
			}
		}, second)
		run(func(c *Credentials) { // nothing opens what is there: it begins anew
			if err := c.Recall(t.Context()); err != nil {
				t.Errorf("a record of a key that is gone stays: %v", err)
			}
		}, third)
	})
}
