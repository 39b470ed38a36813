package sessions

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is a table whose sessions are those of parties, named after them.
type crowd struct {
	*Table[string]
	t    *testing.T
	ends []string
	n    int
}

func newCrowd(t *testing.T, capacity int) *crowd {
	c := &crowd{t: t}
	c.Table = NewTable(TableOptions[string]{
		Capacity: capacity, Recent: time.Minute, Ended: func(of string, _ Cause) { c.ends = append(c.ends, of) },
		Busy: func(of string) bool { return of == "busy" },
	})
	return c
}

// open opens sessions of a party, one a second, and uses them at once.
func (c *crowd) open(party string, n int) (refused int) {
	for range n {
		time.Sleep(time.Second)
		c.n++
		id := fmt.Sprint(c.n)
		if room := c.Room(party); c.Add(party, id, party) != nil {
			refused++
			want(c.t, "room", room, false)
		}
		c.Get(id)
	}
	return refused
}

func (c *crowd) ended(what string, parties ...string) {
	c.t.Helper()
	want(c.t, what, c.ends, parties)
	c.ends = nil
}

func TestWhoHasManySessionsEndsNoneOfWhoHasFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 16)
		for _, victim := range []string{"a", "b", "c", "d"} {
			c.open(victim, 1)
		}
		time.Sleep(3 * time.Hour)
		want(t, "refused", c.open("greedy", 40), 30)
		c.ended("by a flood of used ones", []string(nil)...)
		time.Sleep(2 * time.Minute)
		want(t, "refused", c.open("greedy", 3), 0)
		c.ended("once its own are idle", "greedy", "greedy", "greedy")
		c.open("e", 2)
		c.ended("there are places for others", []string(nil)...)
		c.open("f", 1)
		c.ended("who has many makes room, though others were idle longer", "greedy")
	})
}

func TestAPartyAloneMakesRoomForItself(t *testing.T) {
	for _, party := range []string{"", "all"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 16)
			c.open(party, 14)
			time.Sleep(time.Hour)
			c.Get("1")
			_ = c.Add(party, "fresh", "fresh")
			c.ends = nil
			for range 10 {
				want(t, "refused", c.open(party, 1), 0)
			}
			want(t, "what was never used went first", slices.Contains(c.ends, "fresh"), true)
			_, ok := c.Get("1")
			want(t, "the one that was used", ok, true)
		})
	}
}

func TestWhoHasNextToNothingIsMadeRoomForByWhoeverWasIdleLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1024)
		for i := range 1024 {
			c.open(fmt.Sprint("one of many ", i), 1)
		}
		want(t, "refused", c.open("few", 3), 0)
		c.ended("three of many", "one of many 0", "one of many 1", "one of many 2")
		want(t, "refused", c.open("few", 1), 1)
		time.Sleep(2 * time.Minute)
		want(t, "refused", c.open("few", 1), 0)
		c.ended("then its own", "few")
	})
}

func TestSessionsAreCountedAnewWhenTheyMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 16)
		c.open("address", 14)
		time.Sleep(time.Hour)
		for i := range 10 {
			c.Move(fmt.Sprint(i+1), fmt.Sprint("user ", i))
		}
		c.Move("1", "user 0")
		c.Move("none", "user 1")
		c.open("greedy", 9)
		want(t, "parties", len(c.of.all), 12)
		c.ended("of the party that has more than an eighth", slices.Repeat([]string{"address"}, 2)...)
		c.Close()
		want(t, "parties", len(c.of.all)+len(c.of.large), 0)
	})
}

func TestBusySessionsOfWhoHasManyArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 16)
		c.open("busy", 10)
		c.open("a", 1)
		c.open("b", 1)
		time.Sleep(time.Hour)
		c.open("c", 1)
		c.open("d", 1)
		c.open("e", 1)
		c.open("f", 1)
		c.open("g", 1)
		c.ended("who has none that may go is passed over", "a")
	})
}

func TestPartiesAreCountedUnderConcurrency(t *testing.T) {
	tab := NewTable(TableOptions[int]{Capacity: 64, Idle: time.Hour})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				id := fmt.Sprintf("%d-%d", g, i)
				_ = tab.Add(fmt.Sprint(g), id, i)
				tab.Get(id)
				tab.Move(id, fmt.Sprint(i%5))
				if i%3 == 0 {
					tab.Remove(id)
				}
				tab.TakeOut(fmt.Sprintf("%d-%d", g, i-7), 0)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, p := range tab.of.all {
		n += len(p.sessions)
	}
	want(t, "sessions of parties", n, tab.Len())
	tab.Close()
	want(t, "parties", len(tab.of.all)+len(tab.of.large), 0)
}
