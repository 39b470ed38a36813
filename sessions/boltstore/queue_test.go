package boltstore

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// TestWhatIsSmallDoesNotWaitForAllThatIsLarge: what somebody else has kept by then is little of it.
func TestWhatIsSmallDoesNotWaitForAllThatIsLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{})
		proceed := held(s)
		const sessions, size = 40, 600 << 10
		const most = 2 * maxLarge / size // of the write that was next, and of the small one's own
		ends := meet(s, sessions, size)
		small := make(chan error, 1)
		go func() {
			err := s.Commit(background, store.Name("small"), put("f", "x"))
			if n := len(ends); err == nil && n > most {
				err = fmt.Errorf("%d large ones came first", n)
			}
			small <- err
		}()
		synctest.Wait()
		proceed()
		for i := range sessions {
			if err := <-ends; err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		}
		if err := <-small; err != nil {
			t.Error(err)
		}
	})
}

// TestTheChangesOfASessionStayInTheirOrder: what only ends it, above all, must not come before what it ends.
func TestTheChangesOfASessionStayInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{})
		proceed := held(s)
		large := strings.Repeat("x", maxLarge)
		ended, other := store.Name("ended"), store.Name("other")
		var all []chan error
		begin := func(what func() error) {
			done := make(chan error, 1)
			all = append(all, done)
			go func() { done <- what() }()
			synctest.Wait()
		}
		begin(func() error { return s.Commit(background, other, put("f", large)) })
		begin(func() error { return s.Commit(background, ended, put("f", large)) })
		begin(func() error {
			return s.Commit(background, other, store.Change{Kind: store.Flow, ID: "f", Replaces: 1, Value: []byte("last"), TTL: time.Hour})
		})
		begin(func() error { return s.End(background, ended) })
		proceed()
		for i, done := range all {
			if err := <-done; err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		}
		if v := values(t, s, ended); len(v) != 0 {
			t.Errorf("the session that was ended has %d records", len(v))
		}
		if v := values(t, s, other); v["f"] != "last" {
			t.Errorf("the last value is %.10q", v["f"])
		}
	})
}

// TestATouchStaysBehindTheCommitBeforeIt: otherwise the record lives no longer than that says.
func TestATouchStaysBehindTheCommitBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{})
		proceed := held(s)
		session, large := store.Name("session"), []byte(strings.Repeat("x", maxLarge))
		done := make(chan error, 3)
		for _, what := range []func() error{
			func() error { return s.Commit(background, store.Name("other"), put("f", string(large))) },
			func() error {
				return s.Commit(background, session, store.Change{Kind: store.Session, TTL: time.Minute, Value: large})
			},
			func() error { return s.Touch(background, store.Touch{Session: session, TTL: time.Hour}) },
		} {
			go func() { done <- what() }()
			synctest.Wait()
		}
		proceed()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		r, err := s.Get(background, store.Address{Session: session, Kind: store.Session})
		if err != nil || r.TTL < 50*time.Minute {
			t.Errorf("it lives for %v, %v", r.TTL, err)
		}
	})
}

// TestAnEndStaysBehindWhatItEndsOnAFullDisk: where ends have room of their own they go first, but not before that.
func TestAnEndStaysBehindWhatItEndsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{})
		ended := store.Name("ended")
		commit(t, s, ended, put("f", "x"))
		if err := s.Ping(background); err != nil { // so that it is in the file
			t.Fatal(err)
		}
		proceed := held(s)
		done := make(chan error, 2)
		go func() { done <- s.Commit(background, ended, put("g", "late")) }()
		synctest.Wait()
		go func() { done <- s.End(background, ended) }()
		synctest.Wait()
		s.short = true // the file took nothing the last time
		proceed()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if v := values(t, s, ended); len(v) != 0 {
			t.Errorf("the session that was ended has %d records", len(v))
		}
	})
}
