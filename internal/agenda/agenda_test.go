package agenda

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing counts how often it was due.
type thing struct {
	place Entry
	times int
	again bool
}

func newThing(again bool) *thing {
	t := &thing{again: again}
	t.place.Item = t
	return t
}

func (t *thing) Due() bool { t.times++; return t.again }

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func TestThingsAreDueOnceAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(10 * time.Second)
		first, second, gone := newThing(false), newThing(false), newThing(false)
		a.Add(&first.place)
		a.Add(&first.place) // twice is once
		a.Add(&gone.place)
		time.Sleep(4 * time.Second)
		a.Add(&second.place)
		gone.place.Remove()
		gone.place.Remove()
		want(t, "on it", a.Len(), 2)
		want(t, "next", a.Run(0), 6*time.Second)
		time.Sleep(6 * time.Second)
		want(t, "next", a.Run(0), 4*time.Second)
		want(t, "due", fmt.Sprint(first.times, second.times, gone.times), "1 0 0")
		want(t, "ahead of time", a.Run(4*time.Second), 6*time.Second)
		want(t, "due", fmt.Sprint(first.times, second.times, gone.times), "1 1 0")
		want(t, "on it", a.Len(), 0)
		first.place.Remove()
	})
}

func TestThingsCanBeDueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(time.Second)
		thing := newThing(true)
		a.Add(&thing.place)
		for range 3 {
			time.Sleep(time.Second)
			a.Run(0)
		}
		want(t, "times", thing.times, 3)
		want(t, "on it", a.Len(), 1)
	})
}

func TestThousandsAtOnce(t *testing.T) {
	a := New(time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 500 {
				thing := newThing(false)
				a.Add(&thing.place)
				if i%2 == 0 {
					thing.place.Remove()
				}
			}
		})
	}
	all.Wait()
	want(t, "on it", a.Len(), 2000)
	a.Run(2 * time.Hour)
	want(t, "left", a.Len(), 0)
}
