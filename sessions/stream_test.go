package sessions

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestEventsOfAStreamAreLoggedFirstAndReplayedExactly_E20_E21(t *testing.T) {
	s := NewStream(7, Limits{})
	s.Append(ev("a"))
	s.Append(ev("b"))
	c := new(tape)
	want(t, "missed", s.Attach(c, 1), 0)
	s.Flush()
	s.Append(ev("c"))
	got, ended, _ := c.state()
	want(t, "events", got, []string{"7-2:b", "7-3:c"})
	want(t, "ended", ended, false)
	s.Finish(ev("d"))
	got, ended, err := c.state()
	want(t, "events", got, []string{"7-2:b", "7-3:c", "7-4:d"})
	want(t, "ended", ended, true)
	want(t, "err", err, error(nil))
	if s.Append(ev("e")) || s.Finish(ev("f")) {
		t.Error("the stream took events after its end")
	}
}

func TestFinishedStreamReplaysItsEnd(t *testing.T) {
	s := NewStream(1, Limits{})
	s.Append(ev("a"))
	s.Finish(ev("b"))
	want(t, "exhausted before", s.Exhausted(1), false)
	want(t, "exhausted after", s.Exhausted(2), true)
	c := new(tape)
	s.Attach(c, 0)
	s.Flush()
	got, ended, _ := c.state()
	want(t, "events", got, []string{"1-1:a", "1-2:b"})
	want(t, "ended", ended, true)
}

func TestMarksTakeANumberAndAreNotReplayed_E7(t *testing.T) {
	s := NewStream(1, Limits{})
	c := new(tape)
	s.Attach(c, 0)
	s.Queue(nil)
	s.Append(ev("a"))
	got, _, _ := c.state()
	want(t, "live", got, []string{"1-1:mark", "1-2:a"})
	c = new(tape)
	s.Attach(c, 0)
	s.Flush()
	got, _, _ = c.state()
	want(t, "replayed", got, []string{"1-2:a"})
}

func TestNewestCarrierWins_A31(t *testing.T) {
	s := NewStream(0, Limits{})
	one, two := new(tape), new(tape)
	s.Resume(one)
	s.Append(ev("a"))
	s.Resume(two)
	s.Append(ev("b"))
	got, ended, err := one.state()
	want(t, "first", got, []string{"0-1:a"})
	want(t, "ended", ended, true)
	want(t, "cause", err, ErrReplaced)
	got, ended, _ = two.state()
	want(t, "second", got, []string{"0-2:b"})
	want(t, "ended", ended, false)
	s.Detach(one) // too late to matter
	want(t, "attached", s.Attached(), true)
	s.Detach(two)
	want(t, "attached", s.Attached(), false)
}

func TestBrokenCarrierIsLetGoAndItsEventsComeAgain(t *testing.T) {
	s := NewStream(0, Limits{})
	one := &tape{fail: true}
	s.Resume(one)
	s.Append(ev("a"))
	_, ended, err := one.state()
	want(t, "ended", ended, true)
	want(t, "cause", err, "broken pipe")
	two := new(tape)
	s.Resume(two)
	s.Flush()
	got, _, _ := two.state()
	want(t, "redelivered", got, []string{"0-1:a"})
}

func TestAppendDoesNotWaitForAnothersWrite(t *testing.T) {
	s := NewStream(1, Limits{})
	c := &tape{block: make(chan struct{}), inside: make(chan struct{}, 9)}
	s.Attach(c, 0)
	var wg sync.WaitGroup
	wg.Go(func() { s.Append(ev("a")) })
	<-c.inside
	s.Append(ev("b")) // would hang here
	s.Append(ev("c"))
	close(c.block)
	wg.Wait()
	got, _, _ := c.state()
	want(t, "order", got, []string{"1-1:a", "1-2:b", "1-3:c"})
}

func TestReplacingABlockedCarrierServesTheNewOneAtOnce(t *testing.T) {
	s := NewStream(1, Limits{})
	old := &tape{block: make(chan struct{}), inside: make(chan struct{}, 9)}
	s.Attach(old, 0)
	var wg sync.WaitGroup
	wg.Go(func() { s.Append(ev("a")) })
	<-old.inside
	c := new(tape)
	s.Attach(c, 0)
	s.Flush()
	s.Append(ev("b"))
	got, _, _ := c.state()
	want(t, "new carrier", got, []string{"1-1:a", "1-2:b"})
	_, ended, err := old.state()
	want(t, "old carrier ended", ended, true)
	want(t, "cause", err, ErrReplaced)
	close(old.block)
	wg.Wait()
}

func TestSlowCarrierOfALiveStreamIsLetGoBeforeItWouldSeeAGap(t *testing.T) {
	s := NewStream(1, Limits{Events: 2})
	c := &tape{block: make(chan struct{}), inside: make(chan struct{}, 9)}
	s.Attach(c, 0)
	var wg sync.WaitGroup
	wg.Go(func() { s.Append(ev("a")) })
	<-c.inside
	var taken []bool
	for i := range 4 {
		taken = append(taken, s.QueueLive(fmt.Appendf(nil, "%d", i)))
	}
	want(t, "taken", taken, []bool{true, true, true, false})
	close(c.block)
	wg.Wait()
	_, ended, err := c.state()
	want(t, "ended", ended, true)
	want(t, "cause", err, ErrLagging)
	late := new(tape)
	want(t, "missed", s.Attach(late, 0), 2)
	s.Flush()
	got, _, _ := late.state()
	want(t, "what is left", got, []string{"1-3:1", "1-4:2"})
}

func TestVolatileStreamForgets(t *testing.T) {
	s := NewVolatileStream(Limits{})
	s.Append(ev("nobody there"))
	c := new(tape)
	s.Resume(c)
	s.Append(ev("a"))
	got, _, _ := c.state()
	want(t, "events", len(got), 1)
	want(t, "log", len(s.log.events), 0)
	s.Finish(ev("b"))
	_, ended, _ := c.state()
	want(t, "ended", ended, true)
}

func TestQueueLiveNeedsACarrier_C3(t *testing.T) {
	s := NewStream(0, Limits{})
	want(t, "without", s.QueueLive(ev("a")), false)
	c := new(tape)
	s.Resume(c)
	want(t, "with", s.QueueLive(ev("b")), true)
	s.Flush()
	got, _, _ := c.state()
	want(t, "events", got, []string{"0-1:b"})
}

func TestKeepAliveOnlyAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1, Limits{})
		c := new(tape)
		s.Attach(c, 0)
		time.Sleep(9 * time.Second)
		s.KeepAlive(10 * time.Second)
		s.Append(ev("a"))
		time.Sleep(9 * time.Second)
		s.KeepAlive(10 * time.Second)
		time.Sleep(time.Second)
		s.KeepAlive(10 * time.Second)
		got, _, _ := c.state()
		want(t, "events", got, []string{"1-1:a", "0-0:ping"})
		c.fail = true
		time.Sleep(10 * time.Second)
		s.KeepAlive(10 * time.Second)
		_, ended, _ := c.state()
		want(t, "a failed ping ends the carrier", ended, true)
	})
}

// However appends, attachments and failures interleave, a client that resumes
// after the last event it saw gets every event once and in order.
func TestResumingClientSeesEveryEventOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStream(1, Limits{Events: 1000})
		c := new(tape)
		s.Attach(c, 0)
		var seen []string
		next := 0
		take := func() {
			got, _, _ := c.state()
			seen = append(seen, got...)
			c.mu.Lock()
			c.flushed = nil
			c.mu.Unlock()
		}
		for _, op := range rapid.SliceOfN(rapid.IntRange(0, 5), 1, 60).Draw(t, "ops") {
			switch op {
			case 0, 1:
				next++
				s.Append(fmt.Appendf(nil, "%d", next))
			case 2:
				next++
				s.Queue(fmt.Appendf(nil, "%d", next))
			case 3:
				c.mu.Lock()
				c.fail = true // the connection breaks
				c.mu.Unlock()
			case 4:
				take()
				c = new(tape)
				s.Attach(c, uint64(len(seen)))
				s.Flush()
			case 5: // the connection gets another carrier
				if s.Hold(c) {
					next++
					s.Append(fmt.Appendf(nil, "%d", next))
					take()
					successor := &tape{fail: c.fail}
					s.Pass(c, successor)
					c = successor
				}
			}
		}
		take()
		c = new(tape)
		s.Attach(c, uint64(len(seen)))
		s.Flush()
		take()
		if len(seen) != next {
			t.Fatalf("saw %d of %d events: %v", len(seen), next, seen)
		}
		for i, got := range seen {
			if got != fmt.Sprintf("1-%d:%d", i+1, i+1) {
				t.Fatalf("event %d is %s", i+1, got)
			}
		}
	})
}

func TestConcurrentAppendsKeepLogAndWireAlike(t *testing.T) {
	s := NewStream(1, Limits{Events: 10_000})
	c := new(tape)
	s.Attach(c, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				s.Append(ev("x"))
				s.KeepAlive(time.Hour)
			}
		})
	}
	wg.Wait()
	got, _, _ := c.state()
	want(t, "delivered", len(got), 1600)
	for i, e := range got {
		if e != fmt.Sprintf("1-%d:x", i+1) {
			t.Fatalf("event %d is %s", i+1, e)
		}
	}
}

// A question gives way like any other event, and it is known which one did.
func TestWhichQuestionsWereLost(t *testing.T) {
	s := NewStream(1, Limits{Events: 2})
	s.Append([]byte("started"))
	s.Ask([]byte("one?"), "1")
	s.Ask([]byte("two?"), "2")
	s.Append([]byte("alive"))
	for after, want := range map[uint64]string{0: "1", 1: "1", 2: "", 3: ""} {
		if got := strings.Join(s.Lost(after), " "); got != want {
			t.Errorf("after %d the questions %q were lost, not %q", after, got, want)
		}
	}
	back := NewStream(1, Limits{Events: 1})
	back.Recall([]Event{{Seq: 4, Data: []byte("one?"), Question: "1"}}, 9)
	back.Append([]byte("alive"))
	if got := strings.Join(back.Lost(3), " "); got != "1" {
		t.Errorf("of another process's questions %q were lost", got)
	}
	for n := range 3 * maxAsked {
		s.Ask([]byte("more?"), strconv.Itoa(n))
	}
	if n := len(s.Lost(0)); n != maxAsked-2 {
		t.Errorf("%d lost questions are known", n)
	}
}
