package subscriptions

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/internal/budget"
)

// A session that subscribes to a resource has a connection to the server for as long as it
// lasts, and need not be there: such listens are as few as those that are shared, and the
// last of them are for others.
func TestListensForResourcesAreBounded(t *testing.T) {
	for name, opt := range map[string]struct {
		listens int
		endless *budget.Places
	}{
		"by limits.listens": {16, nil},
		"by descriptors":    {0, budget.NewPlaces(16)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { boundedListens(t, opt.listens, opt.endless) })
		})
	}
}

func boundedListens(t *testing.T, listens int, endless *budget.Places) {
	s := &server{}
	h, log := hubOf(t, s, listens)
	h.opt.Endless = endless
	one := func() *Resources {
		r := h.Resources(&ear{}, as(""), 8)
		t.Cleanup(r.Close)
		return r
	}
	var open []*Resources
	for range 14 {
		r := one()
		if err := r.Subscribe("one", "", "x:"); err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	if err := one().Subscribe("one", "", "x:"); !errors.Is(err, ErrNoPlace) {
		t.Errorf("one more of 16: %v", err)
	}
	if n := log.count("limits.listens"); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	if err := open[0].Subscribe("one", "", "y:"); err != nil {
		t.Errorf("who has a listen cannot subscribe to more: %v", err)
	}
	greedy := as("made-up")
	greedy.Party = "one"
	if h.Join(&ear{}, greedy, tools) {
		t.Error("the same party gets one that is shared")
	}
	if err := one().Subscribe("other", "", "x:"); err != nil {
		t.Errorf("another party: %v", err)
	}
	if pass(overlap); h.taken != 15 {
		t.Errorf("%d places are taken", h.taken)
	}
	if n, _ := s.listens(); n != 15 {
		t.Errorf("%d listens are open", n)
	}
	open[0].Close()
	open[1].Unsubscribe("x:")
	synctest.Wait()
	if h.taken != 13 {
		t.Errorf("%d places are taken when two of 15 have ended", h.taken)
	}
	if err := one().Subscribe("one", "", "x:"); err != nil {
		t.Errorf("in the place of one that has ended: %v", err)
	}
}

// What nobody hears any more makes room for a session's own listen, too.
func TestListensForResourcesAreMadeRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 8)
		h.opt.Endless = budget.NewPlaces(8)
		for _, principal := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			as := as(principal)
			as.Party = "one"
			e := &ear{}
			h.Join(e, as, tools)
			h.Leave(e, principal)
		}
		r := h.Resources(&ear{}, as(""), 8)
		defer r.Close()
		if err := r.Subscribe("one", "", "x:"); err != nil {
			t.Error(err)
		}
		if n, _ := s.listens(); n != 7 {
			t.Errorf("%d listens are open", n)
		}
	})
}

// A subscription that fails gives its place back.
func TestFailedSubscriptionsTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: away}
		h, _ := hubOf(t, s, 2)
		for range 8 {
			r := h.Resources(&ear{}, as(""), 8)
			defer r.Close()
			if err := r.Subscribe("one", "", "x:"); !errors.Is(err, away) {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if h.taken != 0 || len(h.has) != 0 {
			t.Errorf("%d places are taken", h.taken)
		}
	})
}
