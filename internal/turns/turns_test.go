package turns

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/internal/inorder"
)

func TestAFloodLeavesHalfOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(8)
		f := newField(t, q)
		for range 100 {
			f.enter(Who{Principal: "greedy", Session: "s"})
		}
		f.expect("alone", Who{Principal: "greedy", Session: "s"}, 4)
		for range 2 {
			f.enter(Who{Principal: "modest"})
		}
		f.expect("who wants little", Who{Principal: "modest"}, 2)
		f.leave(Who{Principal: "modest"})
		f.leave(Who{Principal: "modest"})
		for range 100 {
			f.enter(Who{Session: "another"})
		}
		f.expect("of two", Who{Session: "another"}, 2)
		f.leave(Who{Principal: "greedy", Session: "s"})
		f.expect("whose turn it is not", Who{Principal: "greedy", Session: "s"}, 3)
		f.expect("whose it is", Who{Session: "another"}, 3)
		f.end()
	})
}

// A session with hundreds of calls waits as long as one with a single one.
func TestSessionsOfATenantTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t, New(1))
		busy, modest := Who{Principal: "p", Session: "busy"}, Who{Principal: "p", Session: "modest"}
		for range 100 {
			f.enter(busy)
		}
		f.enter(modest)
		f.leave(busy)
		f.expect("the first in line", busy, 1)
		f.leave(busy)
		f.expect("then the other session", modest, 1)
		f.leave(modest)
		f.expect("and the first again", busy, 1)
		f.end()
	})
}

func TestWhoGivesUpTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1)
		_, _ = q.Enter(t.Context(), Who{Principal: "a"})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := q.Enter(ctx, Who{Principal: "b"})
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil {
			t.Error("it got a place")
		}
		q.Leave(Who{Principal: "a"})
		if waited, err := q.Enter(t.Context(), Who{Principal: "c"}); waited || err != nil {
			t.Errorf("the place is taken: %v, %v", waited, err)
		}
	})
}

// What is large goes when it is its turn, though what is small would find room for longer, and counts as what it is.
func TestWorkOfDifferentSizesTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(8)
		entered := make(chan string, 8)
		enter := func(name string, places int) {
			go func() {
				if _, err := q.EnterWith(t.Context(), Who{Principal: name}, places); err == nil {
					entered <- name
				}
			}()
			synctest.Wait()
		}
		expect := func(what string, names ...string) {
			t.Helper()
			var got []string
			for len(entered) > 0 {
				got = append(got, <-entered)
			}
			if slices.Sort(got); !slices.Equal(got, names) {
				t.Errorf("%s: %q have entered, want %q", what, got, names)
			}
		}
		leave := func(name string, places int) {
			q.LeaveWith(Who{Principal: name}, places)
			synctest.Wait()
		}
		enter("greedy", 6)
		enter("greedy", 1)
		expect("more than half is one's who wanted it at once", "greedy")
		enter("small", 1)
		enter("large", 6)
		expect("one place is enough for what is large", "large", "small")
		enter("small", 1)
		enter("another", 6)
		leave("small", 1)
		leave("greedy", 6)
		expect("in turn", "greedy", "small")
		leave("large", 6)
		expect("what is large", "another")
		leave("greedy", 1)
		leave("small", 1)
		leave("another", 6)
		if len(q.tenants) > 0 || q.free != 8 {
			t.Errorf("left: %d tenants, %d places", len(q.tenants), q.free)
		}
	})
}

func TestANilQueueHasAPlaceForEverybody(t *testing.T) {
	var q *Queue
	waited, err := q.Enter(t.Context(), Who{})
	q.Leave(Who{})
	if waited || err != nil {
		t.Error(waited, err)
	}
}

// Whatever comes and goes: no place is lost or given twice, no tenant has more than it
// leaves when it takes one, nobody waits who could have a place, and in the end nothing is left.
func TestNoPlaceIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			places := rapid.IntRange(1, 9).Draw(r, "places")
			q := New(places)
			f := newField(t, q)
			who := rapid.Custom(func(r *rapid.T) Who {
				return Who{
					Principal: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(r, "principal"),
					Session:   rapid.SampledFrom([]any{nil, 1, 2}).Draw(r, "session"),
				}
			})
			for range rapid.IntRange(1, 60).Draw(r, "steps") {
				w := who.Draw(r, "who")
				switch rapid.IntRange(0, 4).Draw(r, "what") {
				case 0, 1:
					f.enter(w)
				case 2, 3:
					if f.in[w] > 0 {
						f.leave(w)
					}
				default:
					f.giveUp(w)
				}
				f.judge(places)
			}
			f.end()
			if len(q.tenants) > 0 || q.free != places || q.waiting.Len() > 0 {
				t.Errorf("left: %d parties, %d of %d places, %d in line", len(q.tenants), q.free, places, q.waiting.Len())
			}
		})
	})
}

// field has work that enters a queue.
type field struct {
	t       *testing.T
	queue   *Queue
	in      map[Who]int
	waiting map[Who][]context.CancelFunc
	events  chan event
}

type event struct {
	who Who
	err error
}

func newField(t *testing.T, q *Queue) *field {
	return &field{t: t, queue: q, in: map[Who]int{}, waiting: map[Who][]context.CancelFunc{}, events: make(chan event, 1000)}
}

func (f *field) enter(w Who) {
	ctx, cancel := context.WithCancel(f.t.Context())
	f.waiting[w] = append(f.waiting[w], cancel)
	go func() {
		_, err := f.queue.Enter(ctx, w)
		f.events <- event{who: w, err: err}
	}()
	f.settle()
}

// settle waits until nobody moves, and notes who has got in.
func (f *field) settle() {
	synctest.Wait()
	for len(f.events) > 0 {
		if e := <-f.events; e.err == nil {
			f.in[e.who]++
			f.waiting[e.who] = f.waiting[e.who][1:] // in line order: the first
		}
	}
}

func (f *field) leave(w Who) {
	f.in[w]--
	f.queue.Leave(w)
	f.settle()
}

// giveUp has the last of those who wait go.
func (f *field) giveUp(w Who) {
	if n := len(f.waiting[w]); n > 0 {
		f.waiting[w][n-1]()
		f.waiting[w] = f.waiting[w][:n-1]
		f.settle()
	}
}

func (f *field) expect(what string, w Who, n int) {
	f.t.Helper()
	if f.in[w] != n {
		f.t.Errorf("%s: %d places, want %d", what, f.in[w], n)
	}
}

func (f *field) judge(places int) {
	f.t.Helper()
	used, tenants := 0, map[Who]int{}
	for w, n := range f.in {
		used += n
		tenants[w.tenant()] += n
	}
	if used > places {
		f.t.Fatalf("%d places of %d are taken", used, places)
	}
	for w, n := range f.waiting {
		if len(n) > 0 && tenants[w.tenant()] < places-used {
			f.t.Fatalf("%v waits with %d places, while %d are free", w, tenants[w.tenant()], places-used)
		}
	}
}

// end lets everybody go.
func (f *field) end() {
	for w := range f.waiting {
		for len(f.waiting[w]) > 0 {
			f.giveUp(w)
		}
	}
	for w, n := range f.in {
		for range n {
			f.leave(w)
		}
	}
}

// Work with a place in another order lets those behind it begin when it has to wait, and not before it stands in line.
func TestWhoWaitsForATurnPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, links := New(2), make([]inorder.Link, 4)
		var begin inorder.Chain
		var served []int
		for i := range links {
			begin.Add(&links[i])
			links[i].When(func() {
				go func() {
					if _, err := q.EnterPassing(t.Context(), Who{Session: "s"}, &links[i]); err != nil {
						t.Error(err)
					}
					served = append(served, i) // one at a time
					links[i].Pass()
				}()
			})
		}
		synctest.Wait()
		var last inorder.Link
		if !begin.Add(&last) {
			t.Error("who waits for a turn holds up what is behind it")
		}
		for range links {
			q.Leave(Who{Session: "s"})
			synctest.Wait()
		}
		if !slices.Equal(served, []int{0, 1, 2, 3}) {
			t.Errorf("their turns came in the order %v", served)
		}
	})
}
