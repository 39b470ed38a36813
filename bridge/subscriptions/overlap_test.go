package subscriptions

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// told is how a session hears of a resource.
func told(uris ...string) string {
	return mcp.NotificationResourcesUpdated + " " + strings.Join(uris, " "+mcp.NotificationResourcesUpdated+" ")
}

// updateOn has the server say in its nth listen that a resource has changed.
func (s *server) updateOn(n int, uri string) {
	s.mu.Lock()
	say := s.heard[n]
	s.mu.Unlock()
	say(jsonrpc.Message{Method: mcp.NotificationResourcesUpdated, Params: []byte(`{"uri":"` + uri + `"}`)})
}

// following returns a session that is subscribed to these, one after the other, and has nothing under way.
func following(t *testing.T, h *Hub, e *ear, uris ...string) *Resources {
	r := h.Resources(e, as(""), 100)
	t.Cleanup(r.Close)
	for _, uri := range uris {
		if err := r.Subscribe("", "", uri); err != nil {
			t.Fatal(err)
		}
	}
	pass(2 * overlap)
	e.take()
	return r
}

// keep has the catalog keep what a resource holds, and kept reports whether it still does.
func keep(h *Hub, uri string) {
	if _, slot := h.opt.Catalog.Lookup("", nil, reading(uri), nil); slot != nil {
		slot.Keep([]byte(`{"contents":[],"ttlMs":200000,"cacheScope":"private"}`))
	}
}

func kept(h *Hub, uri string) bool {
	result, _ := h.opt.Catalog.Lookup("", nil, reading(uri), nil)
	return result != nil
}

func reading(uri string) *downstream.Request {
	req := downstream.NewRequest(jsonrpc.Message{Method: mcp.MethodResourcesRead, Params: []byte(`{"uri":"` + uri + `"}`)})
	return &req
}

// changes are how a set changes.
func changes(gained, left string) map[string]func(*Resources) error {
	return map[string]func(*Resources) error{
		"subscribe":   func(r *Resources) error { return r.Subscribe("", "", gained) },
		"unsubscribe": func(r *Resources) error { r.Unsubscribe(left); return nil },
	}
}

// What the server wrote to a listen before it acknowledged the next one may come after that: each has a
// connection of its own.
func TestAnUpdateThatComesAfterTheSwitchIsHeard_C14(t *testing.T) {
	for name, change := range changes("x:c", "x:b") {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := &server{}, &ear{}
				h, _ := hubOf(t, s, 0)
				r := following(t, h, e, "x:a", "x:b")
				keep(h, "x:a")
				if err := change(r); err != nil {
					t.Fatal(err)
				}
				s.updateOn(1, "x:a/part")
				s.updateOn(2, "x:a/part")
				s.updateOn(1, "x:a")
				if got := e.take(); got != told("x:a/part", "x:a/part", "x:a") {
					t.Errorf("heard %q", got)
				}
				if kept(h, "x:a") {
					t.Error("what has changed is kept")
				}
				if open, _ := s.listens(); open != 2 {
					t.Errorf("%d listens are open in the overlap", open)
				}
				pass(overlap)
				if open, asked := s.listens(); open != 1 || asked != 3 {
					t.Errorf("%d listens of %d are open after the overlap", open, asked)
				}
				if got := e.take(); got != "" {
					t.Errorf("without a gap it hears %q", got)
				}
			})
		})
	}
}

// Whoever has left a resource hears no more of it, nor of its parts, also from the listen before.
func TestWhatWasLeftIsNotHeardOfInTheOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &server{}, &ear{}
		h, _ := hubOf(t, s, 0)
		r := following(t, h, e, "x:a", "x:b", "x:b/c")
		keep(h, "x:b")
		r.Unsubscribe("x:b")
		s.updateOn(2, "x:b/part")
		s.updateOn(2, "x:b")
		s.updateOn(2, "x:b/c")
		s.updateOn(2, "y:")
		if got := e.take(); got != told("x:b/c", "y:") {
			t.Errorf("heard %q", got)
		}
		if kept(h, "x:b") {
			t.Error("what has changed is kept")
		}
	})
}

// However fast a session changes what it follows, it has two listens at most, and hears once, and soon, of
// what the others may have had to say.
func TestManyChangesInARowLoseNoUpdateAndDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &server{}, &ear{}
		h, _ := hubOf(t, s, 0)
		r := following(t, h, e, "x:a", "x:b")
		for i := range 20 {
			keep(h, "x:a")
			if err := r.Subscribe("", "", "y:"+strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
			if open, _ := s.listens(); open != 2 || h.taken != 1 {
				t.Fatalf("%d listens are open in %d places", open, h.taken)
			}
			if i > 0 && kept(h, "x:a") {
				t.Error("what may have changed is kept")
			}
		}
		if got := e.take(); got != "" {
			t.Errorf("at once it hears %q", got)
		}
		r.Unsubscribe("x:b")
		pass(overlap)
		got := e.take()
		if strings.Count(got, told("x:a")) != 1 || strings.Count(got, told("y:3")) != 1 || strings.Contains(got, told("x:b")) {
			t.Errorf("after the changes it hears %q", got)
		}
		pass(overlap)
		if open, _ := s.listens(); open != 1 || e.take() != "" {
			t.Errorf("%d listens are open at the end, or there is more to hear", open)
		}
	})
}

// A listen that breaks off in its overlap was not read to its end. It is not opened again.
func TestAListenThatBreaksOffInItsOverlapIsMadeUpFor_C20(t *testing.T) {
	for name, end := range map[string]struct {
		err  error
		want string
	}{
		"broken off": {away, told("a")},
		"in order":   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := &server{}, &ear{}
				h, _ := hubOf(t, s, 0)
				r := following(t, h, e, "a")
				if err := r.Subscribe("", "", "b"); err != nil {
					t.Fatal(err)
				}
				s.ends[0] <- end.err
				pass(2 * overlap)
				if got := e.take(); got != end.want {
					t.Errorf("heard %q", got)
				}
				if open, asked := s.listens(); open != 1 || asked != 2 {
					t.Errorf("%d listens of %d are open", open, asked)
				}
			})
		})
	}
}

// Nobody listened for a resource before the session subscribed to it: who reads it then gets what there is.
func TestWhoSubscribesReadsNothingOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := hubOf(t, &server{}, 0)
		r := following(t, h, &ear{}, "x:a")
		keep(h, "x:a")
		keep(h, "x:b")
		if err := r.Subscribe("", "", "x:b"); err != nil {
			t.Fatal(err)
		}
		if kept(h, "x:b") || !kept(h, "x:a") {
			t.Error("what is older than the subscription is kept, or what is not is gone")
		}
	})
}

// A listen that ends while the next one waits for its acknowledgment leaves a gap, too.
func TestAGapThatBeginsDuringASwitchIsToldOf_C20(t *testing.T) {
	for name, change := range changes("c", "b") {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := &server{}, &ear{}
				h, _ := hubOf(t, s, 0)
				r := following(t, h, e, "a", "b")
				acknowledge := make(chan struct{})
				s.mu.Lock()
				s.acknowledge = func(context.Context, int) { <-acknowledge }
				s.mu.Unlock()
				changed := make(chan error)
				go func() { changed <- change(r) }()
				synctest.Wait()
				s.ends[1] <- away
				synctest.Wait()
				close(acknowledge)
				if err := <-changed; err != nil {
					t.Fatal(err)
				}
				if got := e.take(); !strings.HasPrefix(got, told("a")) || strings.Count(got, told("a")) != 1 {
					t.Errorf("after the gap it hears %q", got)
				}
			})
		})
	}
}

// A switch that fails leaves the listen that there is, and its overlap nothing.
func TestASwitchThatFailsInAnOverlapLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &server{}, &ear{}
		h, _ := hubOf(t, s, 0)
		r := following(t, h, e, "a")
		if err := r.Subscribe("", "", "b"); err != nil {
			t.Fatal(err)
		}
		s.fail(away)
		if err := r.Subscribe("", "", "c"); !errors.Is(err, away) {
			t.Errorf("a server that is away: %v", err)
		}
		s.updateOn(1, "b")
		if got := e.take(); got != told("b") {
			t.Errorf("heard %q", got)
		}
		pass(overlap)
		if open, _ := s.listens(); open != 1 || e.take() != told("a") {
			t.Errorf("%d listens are open, or what the first may have said is not told", open)
		}
	})
}

// A session that ends, or follows nothing any more, leaves no listen that is read on, and hears nothing.
func TestNothingIsReadOnForNobody(t *testing.T) {
	for name, end := range map[string]func(*Resources){
		"the session's end": (*Resources).Close,
		"nothing is left":   func(r *Resources) { r.Restore("", nil, []string{"a", "b", "c"}, nil) },
		"unsubscribe": func(r *Resources) {
			for _, uri := range []string{"a", "b", "c"} {
				r.Unsubscribe(uri)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := &server{}, &ear{}
				h, _ := hubOf(t, s, 0)
				r := following(t, h, e, "a")
				for _, uri := range []string{"b", "c"} {
					if err := r.Subscribe("", "", uri); err != nil {
						t.Fatal(err)
					}
				}
				end(r)
				if open, _ := s.listens(); open != 0 || h.taken != 0 {
					t.Errorf("%d listens are open in %d places", open, h.taken)
				}
				pass(2 * overlap)
				if got := e.take(); got != "" {
					t.Errorf("heard %q", got)
				}
			})
		})
	}
}

// What is read on is charged like any listen, and given back.
func TestAListenInItsOverlapIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, memory := charged(t, 1<<20)
		all := []string{"a", "b", "c", "d"}
		for i, uri := range all {
			if err := r.Subscribe("", "", uri); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got, want := int(memory.Used()), costOf(all[:i+1])+costOf(all[:i]); got != want {
				t.Errorf("%d bytes are charged, not %d", got, want)
			}
		}
		if pass(overlap); int(memory.Used()) != costOf(all) {
			t.Errorf("%d bytes are charged after the overlap", memory.Used())
		}
	})
}
