package sessions

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// numbers returns the events 1 to n of stream 1 as a tape has them.
func numbers(n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprintf("1-%d:%d", i, i))
	}
	return all
}

func TestNothingIsDroppedBeforeTheCarrierWasOfferedIt(t *testing.T) {
	for name, s := range map[string]*Stream{"logged": NewStream(1, Limits{Events: 2}), "volatile": NewVolatileStream(Limits{Bytes: 2})} {
		c := new(tape)
		if s.volatile {
			s.id = 1
		}
		s.Attach(c, 0)
		for i := 1; i < 50; i++ {
			s.Queue(fmt.Append(nil, i)) // no Flush between
		}
		s.Seal(ev("50"))
		s.Flush()
		got, ended, err := c.state()
		want(t, name, got, numbers(50))
		want(t, "ended", fmt.Sprint(ended, err), "true <nil>")
		want(t, "kept", len(s.log.events) <= 2, true)
	}
}

func TestWhoSendsMoreThanTheLogHoldsWaitsForTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{Events: 2})
		c := newClogged()
		s.Attach(c, 0)
		sent := 0
		go func() {
			for sent < 5 {
				s.Append(fmt.Append(nil, sent+1))
				sent++
			}
			s.Finish(ev("6"))
		}()
		synctest.Wait()
		want(t, "sent before the client took any", sent, 3)
		for range 3 {
			c.free <- nil
			synctest.Wait()
		}
		got, ended, err := c.state()
		want(t, "events", got, numbers(6))
		want(t, "ended", fmt.Sprint(ended, err), "true <nil>")
	})
}

// Whatever ends the wait, the last word stays for a client that comes back.
func TestWaitForAClientEndsWithIt(t *testing.T) {
	for name, end := range map[string]func(*Stream, *clogged){
		"its write fails":  func(_ *Stream, c *clogged) { c.free <- errors.New("write deadline") },
		"it leaves":        func(s *Stream, c *clogged) { s.Detach(c); c.free <- nil },
		"it comes again":   func(s *Stream, c *clogged) { s.Attach(new(tape), 0); c.free <- nil },
		"and names no one": func(s *Stream, c *clogged) { s.Resume(new(tape)); c.free <- nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStream(1, Limits{Events: 2})
				c := newClogged()
				s.Attach(c, 0)
				done := false
				go func() {
					for i := range 9 {
						s.Append(fmt.Append(nil, i+1))
					}
					s.Finish(ev("10"))
					done = true
				}()
				synctest.Wait()
				want(t, "waits", done, false)
				end(s, c)
				synctest.Wait()
				want(t, "goes on", done, true)
				again := new(tape)
				s.Attach(again, 9)
				s.Flush()
				got, ended, _ := again.state()
				want(t, "the last word", got, []string{"1-10:10"})
				want(t, "ended", ended, true)
			})
		})
	}
}
