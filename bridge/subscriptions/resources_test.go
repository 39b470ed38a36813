package subscriptions

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

func TestSubscriptionsAreBoundedInNumberAndSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := hubOf(t, &server{}, 0)
		r := h.Resources(&ear{}, as(""), 3)
		defer r.Close()
		var tooMany *TooMany
		if err := r.Subscribe("", "", strings.Repeat("x", 3*uriRoom+1)); !errors.As(err, &tooMany) {
			t.Errorf("a URI longer than all may be: %v", err)
		}
		for _, uri := range []string{strings.Repeat("x", 2*uriRoom), "b"} {
			if err := r.Subscribe("", "", uri); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Subscribe("", "", strings.Repeat("y", uriRoom)); !errors.As(err, &tooMany) {
			t.Errorf("URIs that are too long together: %v", err)
		}
		if err := r.Subscribe("", "", "c"); err != nil {
			t.Error(err)
		}
		if err := r.Subscribe("", "", "d"); !errors.As(err, &tooMany) {
			t.Errorf("one too many: %v", err)
		}
		if err := r.Subscribe("", "", "c"); err != nil { // has it already
			t.Error(err)
		}
	})
}

func TestALateAcknowledgmentLosesNoSubscription_C15(t *testing.T) {
	for range 100 { // either may win
		synctest.Test(t, func(t *testing.T) {
			s := &server{acknowledge: func(ctx context.Context, n int) {
				if n == 2 { // at the very moment when it is given up
					select {
					case <-time.After(ackTimeout):
					case <-ctx.Done():
					}
				}
			}}
			h, _ := hubOf(t, s, 0)
			r := h.Resources(&ear{}, as(""), 8)
			defer r.Close()
			if err := r.Subscribe("", "", "a"); err != nil {
				t.Fatal(err)
			}
			subscribed := 1
			if err := r.Subscribe("", "", "b"); err == nil {
				subscribed = 2
			}
			pass(overlap)
			if open, _ := s.listens(); len(r.subscribed()) != subscribed || open != 1 {
				t.Errorf("%d subscriptions, want %d; %d listens, want 1", len(r.subscribed()), subscribed, open)
			}
		})
	}
}

// charged returns the subscriptions of a session, and the memory of so many bytes that these are charged to.
func charged(t *testing.T, limit int64) (*Resources, *budget.Budget) {
	t.Helper()
	memory := budget.New(limit)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	h, _ := hubOf(t, &server{}, 0)
	identity := as("")
	identity.Account = account
	r := h.Resources(&ear{}, identity, 100)
	t.Cleanup(r.Close)
	return r, memory
}

// TestAChangeThatIsUnderWayTakesNothingBackOfWhatAnotherReplicaMade: not for a moment, in which it would be written down so.
func TestAChangeThatIsUnderWayTakesNothingBackOfWhatAnotherReplicaMade(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *Resources) error
		want   string
	}{
		"a subscription": {func(r *Resources) error { return r.Subscribe("", "", "new") }, "here there new"},
		"a resource is left": {func(r *Resources) error {
			r.Unsubscribe("here")
			return nil
		}, "there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				h, _ := hubOf(t, s, 4)
				r := h.Resources(&ear{}, as("a"), 8)
				defer r.Close()
				for _, uri := range []string{"here", "left"} {
					if err := r.Subscribe("", "", uri); err != nil {
						t.Fatal(err)
					}
				}
				taken := make(chan struct{})
				s.acknowledge = func(context.Context, int) { <-taken }
				done := make(chan string, 1)
				go func() {
					if err := test.change(r); err != nil {
						t.Error(err)
					}
					done <- strings.Join(r.Subscribed(), " ")
				}()
				synctest.Wait()
				r.Restore("", []string{"there"}, []string{"left"}, func(err error) { t.Error(err) })
				close(taken)
				if got := <-done; got != test.want {
					t.Errorf("subscribed to %q, want %q", got, test.want)
				}
				synctest.Wait()
				if got := strings.Join(r.listens().uris, " "); got != test.want {
					t.Errorf("it listens for %q, want %q", got, test.want)
				}
			})
		})
	}
}

// What another process subscribed to is charged once, however often that is told, and a
// subscription that was under way meanwhile stays.
func TestRestoredSubscriptionsAreChargedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, memory := charged(t, 256<<10)
		failed := func(err error) { t.Error(err) }
		for range 5 {
			r.Restore("", []string{"a", "b"}, nil, failed)
			synctest.Wait()
			r.Restore("", nil, []string{"b"}, failed)
			synctest.Wait()
		}
		r.Restore("", []string{"b"}, nil, failed)
		pass(overlap)
		if got := int(memory.Used()); got != costOf([]string{"a", "b"}) {
			t.Errorf("%d bytes are charged", got)
		}
		r.change.Lock() // a subscription is under way, which began before
		r.Restore("", []string{"c"}, []string{"a"}, failed)
		r.swap(nil, "d")
		r.change.Unlock()
		synctest.Wait()
		if got := strings.Join(r.Subscribed(), " "); got != "b c d" {
			t.Errorf("subscribed to %s", got)
		}
		for _, uri := range []string{"b", "c", "d"} {
			r.Unsubscribe(uri)
		}
		synctest.Wait()
		if got := memory.Used(); got != 0 {
			t.Errorf("%d bytes stay charged", got)
		}
	})
}

func TestSubscriptionsAreChargedToTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(2*listenCost + 16<<10)
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		h, _ := hubOf(t, &server{}, 0)
		identity := as("")
		identity.Account = account
		r := h.Resources(&ear{}, identity, 100)
		defer r.Close()
		for _, uri := range []string{"a", "b"} {
			if err := r.Subscribe("", "", uri); err != nil {
				t.Fatal(err)
			}
		}
		pass(overlap)
		if got := int(memory.Used()); got != costOf([]string{"a", "b"}) {
			t.Errorf("%d bytes are charged", got)
		}
		if err := r.Subscribe("", "", strings.Repeat("x", 8<<10)); !budget.Short(err) {
			t.Errorf("what is too much: %v", err)
		}
		r.Unsubscribe("a")
		pass(overlap)
		if got := int(memory.Used()); got != costOf([]string{"b"}) {
			t.Errorf("%d bytes are left charged", got)
		}
	})
}

// update has the server say in its newest listen that a resource has changed.
func (s *server) update(t *testing.T, uri string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	say := s.heard[len(s.heard)-1]
	s.mu.Unlock()
	say(jsonrpc.Message{Method: mcp.NotificationResourcesUpdated, Params: []byte(`{"uri":"` + uri + `"}`)})
}

// A server that is busy while a session leaves one of its resources keeps the session's others.
func TestLeavingAResourceLosesNoOther_C14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &server{}, &ear{}
		h, _ := hubOf(t, s, 0)
		r := h.Resources(e, as(""), 8)
		defer r.Close()
		for _, uri := range []string{"a", "b"} {
			if err := r.Subscribe("", "", uri); err != nil {
				t.Fatal(err)
			}
		}
		s.fail(away)
		r.Unsubscribe("b")
		if open, _ := s.listens(); open != 1 {
			t.Fatalf("%d listens are open", open)
		}
		s.mu.Lock()
		s.heard = s.heard[:2] // of those that were acknowledged
		s.mu.Unlock()
		s.update(t, "b")
		s.update(t, "a")
		if got := e.take(); got != mcp.NotificationResourcesUpdated+" a" {
			t.Errorf("heard %q", got)
		}
		s.fail(nil)
		pass(time.Minute)
		if open, _ := s.listens(); open != 1 || strings.Join(r.Subscribed(), " ") != "a" {
			t.Errorf("%d listens are open for %q", open, r.Subscribed())
		}
		e.take()
		s.update(t, "a")
		if got := e.take(); got != mcp.NotificationResourcesUpdated+" a" {
			t.Errorf("heard %q", got)
		}
		if _, asked := s.listens(); asked != 4 {
			t.Errorf("%d listens were asked for", asked)
		}
	})
}

// What another process subscribed to is listened for once the server is there, and who subscribes to
// it meanwhile is told that it cannot be.
func TestRestoredSubscriptionsAreTriedAgain_C19_C20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &server{err: away}, &ear{}
		h, log := hubOf(t, s, 0)
		r := h.Resources(e, as(""), 8)
		defer r.Close()
		failures := 0
		r.Restore("", []string{"a"}, nil, func(error) { failures++ })
		pass(20 * time.Second)
		if err := r.Subscribe("", "", "a"); !errors.Is(err, away) {
			t.Errorf("a subscription without a listen: %v", err)
		}
		if open, _ := s.listens(); open != 0 || failures != 1 || log.count("opened again") == 0 {
			t.Errorf("%d listens are open, %d failures", open, failures)
		}
		s.fail(nil)
		pass(time.Minute)
		if open, _ := s.listens(); open != 1 || e.take() != mcp.NotificationResourcesUpdated+" a" {
			t.Errorf("%d listens are open, or the gap was not told", open)
		}
		if err := r.Subscribe("", "", "a"); err != nil {
			t.Error(err)
		}
		if all, waiting := h.Listens(); all != 1 || waiting != 0 {
			t.Errorf("%d listens, %d of them wait", all, waiting)
		}
	})
}

// A change of the subscriptions that ends a gap tells of what was missed in it, as the listen itself would.
func TestAChangeThatEndsAGapTellsOfIt_C20(t *testing.T) {
	const told = mcp.NotificationResourcesUpdated + " a"
	for name, change := range map[string]func(*Resources) error{
		"subscribe":   func(r *Resources) error { return r.Subscribe("", "", "c") },
		"unsubscribe": func(r *Resources) error { r.Unsubscribe("b"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := &server{end: make(chan error)}, &ear{}
				h, _ := hubOf(t, s, 0)
				r := h.Resources(e, as(""), 8)
				defer r.Close()
				if err := errors.Join(r.Subscribe("", "", "a"), r.Subscribe("", "", "b")); err != nil {
					t.Fatal(err)
				}
				pass(overlap)
				if got := e.take(); got != "" {
					t.Errorf("without a gap it hears %q", got)
				}
				s.fail(away)
				s.end <- away
				synctest.Wait()
				s.fail(nil)
				if err := change(r); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := e.take(); !strings.HasPrefix(got, told) || strings.Count(got, told) != 1 {
					t.Errorf("after the gap it hears %q", got)
				}
			})
		})
	}
}

// Newer credentials that come while older ones are being refused are tried next, and those again only if need be.
func TestNewerCredentialsAreTriedBeforeThoseThatWereRefused_H2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: "t2"}
		h, _ := hubOf(t, s, 0)
		r := h.Resources(&ear{}, as(""), 8)
		defer r.Close()
		r.Restore("t1", []string{"a"}, nil, func(error) { r.Renew("t2") })
		pass(time.Second)
		if open, _ := s.listens(); open != 1 || strings.Join(s.with, " ") != "t1 t2" {
			t.Errorf("%d listens are open, asked with %q", open, s.with)
		}
	})
}

// Whoever knows a session's id, and has forged tokens, takes nothing from what its owner has subscribed to.
func TestCredentialsThatWereNeverTakenReplaceNone_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: "t1"}
		h, _ := hubOf(t, s, 0)
		r := h.Resources(&ear{}, as(""), 8)
		defer r.Close()
		if err := r.Subscribe("", "t1", "a"); err != nil {
			t.Fatal(err)
		}
		for _, forged := range []string{"f1", "f2"} {
			if err := r.Subscribe("", forged, "b"); err == nil {
				t.Error("taken with", forged)
			}
		}
		s.end <- nil
		pass(time.Minute)
		if open, _ := s.listens(); open != 1 || strings.Join(s.with, " ") != "t1 f1 f2 t1" {
			t.Errorf("%d listens are open, asked with %q", open, s.with)
		}
	})
}

// A session that ends while its subscriptions cannot be had leaves nothing.
func TestSubscriptionsThatCannotBeHadEndWithTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: away}
		h, _ := hubOf(t, s, 0)
		r := h.Resources(&ear{}, as(""), 8)
		r.Restore("", []string{"a"}, nil, func(error) {})
		pass(20 * time.Second)
		_, before := s.listens()
		r.Close()
		pass(time.Minute)
		if all, waiting := h.Listens(); all+waiting != 0 {
			t.Errorf("%d listens, %d wait", all, waiting)
		}
		if _, after := s.listens(); after != before {
			t.Errorf("%d more were asked for", after-before)
		}
	})
}

// Requests may still come while the hub ends: what they subscribe to is listened for by nobody.
func TestNoListenBeginsOnceTheHubHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 0)
		r := h.Resources(&ear{}, as(""), 8)
		defer r.Close()
		h.Close()
		if err := r.Subscribe("", "", "a"); !errors.Is(err, ErrEnded) {
			t.Errorf("a subscription ends with %v", err)
		}
		r.Restore("", []string{"b"}, nil, func(err error) { t.Error(err) })
		synctest.Wait()
		if open, _ := s.listens(); open != 0 {
			t.Errorf("%d listens are open", open)
		}
	})
}
