package sessions

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// clogged is a carrier whose client takes nothing before it is let.
type clogged struct {
	tape
	free chan error
}

func newClogged() *clogged { return &clogged{free: make(chan error)} }

func (c *clogged) Flush(bool) error { return ErrBlocked }
func (c *clogged) Ping() error      { return ErrBlocked }

func (c *clogged) Drain() error {
	if err := <-c.free; err != nil {
		return err
	}
	return c.tape.Flush(false)
}

func TestNobodyWaitsForAClientThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		c := newClogged()
		s.Attach(c, 0)
		s.Append(ev("a")) // returns
		s.Append(ev("b"))
		s.Finish(ev("c"))
		c.free <- nil // the first event, and what queued up behind it
		c.free <- nil
		synctest.Wait()
		got, ended, err := c.state()
		want(t, "in order", got, []string{"1-1:a", "1-2:b", "1-3:c"})
		want(t, "ended", ended, true)
		want(t, "cause", err, error(nil))
	})
}

func TestClientThatStaysBehindIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		c := newClogged()
		s.Attach(c, 0)
		s.Append(ev("a"))
		c.free <- errors.New("write deadline")
		synctest.Wait()
		_, ended, err := c.state()
		want(t, "ended", ended, true)
		want(t, "cause", err, "write deadline")
		next := new(tape)
		s.Resume(next)
		s.Flush()
		got, _, _ := next.state()
		want(t, "it comes again", got, []string{"1-1:a"})
	})
}

func TestClientThatIsBehindIsReplacedAtOnce_A31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		c := newClogged()
		s.Attach(c, 0)
		s.Append(ev("a"))
		next := new(tape)
		s.Attach(next, 0)
		s.Append(ev("b"))
		got, _, _ := next.state()
		want(t, "successor", got, []string{"1-1:a", "1-2:b"})
		_, ended, err := c.state()
		want(t, "ended", ended, true)
		want(t, "cause", err, ErrReplaced)
		c.free <- nil
		synctest.Wait()
		want(t, "attached", s.Attached(), true)
	})
}

func TestClientThatNamesNoEventGetsWhatWasOnItsWayOnlyIfThatFailed_A31(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome error
		events  []string // of the successor
	}{
		"it arrived": {nil, []string{"1-2:b"}},
		"it did not": {errors.New("cut short"), []string{"1-1:a", "1-2:b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStream(1, Limits{})
				c := newClogged()
				s.Attach(c, 0)
				s.Append(ev("a"))
				s.Resume(new(tape)) // which is replaced in turn
				next := new(tape)
				s.Resume(next)
				s.Append(ev("b"))
				got, _, _ := next.state()
				want(t, "before it is known", got, []string{})
				c.free <- tc.outcome
				synctest.Wait()
				got, _, _ = next.state()
				want(t, "successor", got, tc.events)
				s.Append(ev("c"))
				got, _, _ = next.state()
				want(t, "afterwards", got, append(tc.events, "1-3:c"))
			})
		})
	}
}

func TestEventsThatArriveWhileTheClientLeavesCountAsSent_E23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		c := newClogged()
		s.Attach(c, 0)
		s.Append(ev("a"))
		s.Detach(c)
		want(t, "before it is known", s.Reachable(), false)
		c.free <- nil
		synctest.Wait()
		want(t, "afterwards", s.Reachable(), true)
	})
}

func TestPingMayBlockAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		c := newClogged()
		s.Attach(c, 0)
		time.Sleep(time.Minute)
		s.KeepAlive(time.Second) // returns
		s.KeepAlive(time.Second) // one at a time
		s.Append(ev("a"))
		c.free <- nil
		c.free <- nil
		synctest.Wait()
		got, _, _ := c.state()
		want(t, "events", got, []string{"1-1:a"})
	})
}

func TestCarrierIsReplacedWithoutAGap(t *testing.T) {
	s := NewStream(1, Limits{})
	c, successor := new(tape), new(tape)
	want(t, "not attached", s.Hold(c), false)
	s.Attach(c, 0)
	s.Append(ev("a"))
	want(t, "held", s.Hold(c), true)
	want(t, "held twice", s.Hold(c), false)
	want(t, "quiet", s.Quiet(0), false)
	s.Append(ev("b"))
	want(t, "passed", s.Pass(c, successor), true)
	s.Append(ev("c"))
	got, ended, _ := c.state()
	want(t, "before", got, []string{"1-1:a"})
	want(t, "the first one is not ended", ended, false)
	got, _, _ = successor.state()
	want(t, "after", got, []string{"1-2:b", "1-3:c"})
}

func TestHeldStreamEndsWhenItIsPassedOn(t *testing.T) {
	s := NewStream(1, Limits{})
	c, successor := new(tape), new(tape)
	s.Attach(c, 0)
	s.Hold(c)
	s.Finish(ev("end"))
	want(t, "passed", s.Pass(c, successor), true)
	got, ended, err := successor.state()
	want(t, "events", got, []string{"1-1:end"})
	want(t, "ended", ended, true)
	want(t, "cause", err, error(nil))
}

func TestHeldCarrierCanBeReplacedAndDetached(t *testing.T) {
	s := NewStream(1, Limits{})
	c := new(tape)
	s.Attach(c, 0)
	s.Hold(c)
	s.Detach(c)
	want(t, "detached", s.Pass(c, new(tape)), false)
	s.Attach(c, 0)
	s.Hold(c)
	s.Attach(new(tape), 0)
	want(t, "replaced", s.Pass(c, new(tape)), false)
	_, _, err := c.state()
	want(t, "cause", err, ErrReplaced)
}

func TestReleasedCarrierGoesOn(t *testing.T) {
	s := NewStream(1, Limits{})
	c := new(tape)
	s.Attach(c, 0)
	s.Hold(c)
	s.Append(ev("a"))
	s.Release(c)
	s.Append(ev("b"))
	got, _, _ := c.state()
	want(t, "events", got, []string{"1-1:a", "1-2:b"})
}

func TestQuietMeansSilenceOfTheCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		want(t, "nobody attached", s.Quiet(0), false)
		s.Attach(new(tape), 0)
		want(t, "just attached", s.Quiet(time.Second), false)
		time.Sleep(time.Second)
		want(t, "a second later", s.Quiet(time.Second), true)
		s.Append(ev("a"))
		want(t, "after an event", s.Quiet(time.Second), false)
	})
}
