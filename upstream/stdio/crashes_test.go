package stdio

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// by is a call of a tool in a tenant's turn.
func by(tenant, name string) *upstream.Call {
	c := tool(name)
	c.Tenant = tenant
	return c
}

// modern is a client of a server that has answered server/discover. With growing intervals
// nobody would get a second process. Refusals last longer than a test may look for them.
func modern(t *testing.T, mode string) *Client {
	t.Helper()
	s := newStdio(t, mode, Options{Dir: t.TempDir(), MinBackoff: time.Millisecond, MaxBackoff: time.Hour})
	s.delays.Multiplier, s.crashes.hold = 1e6, longestHold
	mustDo(t, s, call(mcp.MethodDiscover, ""))
	return s
}

// refused makes a call, and reports whether it was refused for what happened before.
func refused(t *testing.T, s *Client, call *upstream.Call) bool {
	t.Helper()
	_, err := s.Do(t.Context(), call, nil)
	f, ok := err.(*upstream.Failure)
	if ok && f.Cause == upstream.Unreachable {
		t.Errorf("the next process is not started: %v", f)
	}
	if !ok || f.Cause != upstream.Busy {
		return false
	}
	if f.Sent || f.RetryAfter <= 0 || !strings.Contains(f.Error(), "in a row under requests like this one") {
		t.Errorf("%+v", f)
	}
	return true
}

func TestAProcessThatCameUpIsStartedAgainAtOnce(t *testing.T) {
	s := modern(t, "modern")
	for i := range 10 { // each of another client
		if refused(t, s, by(fmt.Sprint("tenant ", i), "exit")) {
			t.Fatal("a client was refused for what others did")
		}
	}
	pidOf(t, s)
}

func TestAProcessThatDoesNotComeUpAgainIsStartedLater(t *testing.T) {
	s := modern(t, "once")
	for range 2 {
		_, _ = s.Do(t.Context(), by("alice", "exit"), nil)
	}
	_, err := s.Do(t.Context(), by("bob", "pid"), nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Unreachable || f.RetryAfter <= 0 {
		t.Errorf("%v", err)
	}
	if k := s.crashes.parties["bob"]; k != nil {
		t.Errorf("bob is blamed: %+v", k)
	}
}

// Calls that come together while the process starts wait for it, and none is the first thing
// that it hears.
func TestCallsWaitForAProcessThatStarts(t *testing.T) {
	s := modern(t, "modern")
	_, _ = s.Do(t.Context(), by("alice", "exit"), nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { mustDo(t, s, by("bob", "pid")) })
	}
	wg.Wait()
}

func TestWhoEndsTheProcessAgainAndAgainIsRefused(t *testing.T) {
	s := modern(t, "modern")
	for range freeEnds + 1 {
		if refused(t, s, by("alice", "exit")) {
			t.Fatal("refused too early")
		}
	}
	if !refused(t, s, by("alice", "exit")) || !refused(t, s, by("alice", `\u0065xit`)) {
		t.Error("the process is ended once more")
	}
	first := pidOf(t, s)
	mustDo(t, s, by("bob", "pid"))
	mustDo(t, s, by("alice", "pid"))
	if pidOf(t, s) != first {
		t.Error("the process was not left in peace")
	}
}

// Those of whom only the account is known are told apart, too.
func TestTheOwnerOfAnAccountIsBlamed(t *testing.T) {
	s, memory := modern(t, "modern"), budget.New(1<<30)
	exit := tool("exit")
	exit.Account = memory.Guest("alice")
	for range freeEnds + 1 {
		_, _ = s.Verbatim(t.Context(), exit, nil)
	}
	if _, err := s.Verbatim(t.Context(), exit, nil); err.(*upstream.Failure).Cause != upstream.Busy {
		t.Errorf("%v", err)
	}
}

// Whoever makes up new tools each time is refused as a whole.
func TestWhoEndsTheProcessInManyWaysIsRefused(t *testing.T) {
	s := modern(t, "modern")
	end := func(i int) *upstream.Call {
		c := call(fmt.Sprint("method/", i), `"name":"exit"`)
		c.Tenant = "alice"
		return c
	}
	for i := range freeEndsOfParty + 1 {
		if refused(t, s, end(i)) {
			t.Fatal("refused too early")
		}
	}
	if !refused(t, s, end(100)) || !refused(t, s, by("alice", "pid")) {
		t.Error("the process is ended once more")
	}
	mustDo(t, s, by("bob", "pid"))
}

// What nobody waits for any more may end the process, too.
func TestWhoLeavesWhatEndsTheProcessIsRefused(t *testing.T) {
	s := modern(t, "modern")
	exit := &upstream.Call{Method: "notifications/exit", Tenant: "alice"}
	given := by("bob", "never answered")
	for range freeEnds + 1 {
		c, err := s.get(t.Context(), tool(""))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := s.Do(ctx, given, nil); left <- err }()
		for len(c.waitingIDs()) == 0 {
		}
		mustDo(t, s, tool("pid")) // the process has it
		cancel()
		<-left
		if err := s.Notify(t.Context(), exit); err != nil {
			t.Fatal(err)
		}
		<-c.ended
		pidOf(t, s)
	}
	if err := s.Notify(t.Context(), exit); err == nil || err.(*upstream.Failure).Cause != upstream.Busy {
		t.Errorf("one more notification: %v", err)
	}
	if !refused(t, s, given) {
		t.Error("a call that was given up each time is not to blame")
	}
}

// A subscription that has begun asks for nothing any more, one that has not may be what ends
// the process.
func TestOnlyASubscriptionThatHasBegunIsNotToBlame(t *testing.T) {
	to := sink{listen: true}
	begun := to.begun()
	if *begun {
		t.Error("it has begun before anything came")
	}
	if to.notify(jsonrpc.Message{}); !*begun {
		t.Error("it has not begun")
	}
	s := modern(t, "modern")
	listen := call(mcp.MethodListen, `"name":"exit"`)
	listen.Tenant = "alice"
	for range freeEnds + 1 {
		_ = s.Listen(t.Context(), listen, nil)
	}
	if err := s.Listen(t.Context(), listen, nil); err == nil || !strings.Contains(err.Error(), "in a row") {
		t.Errorf("%v", err)
	}
}

// The handshake of an older revision is the last that a process is asked, whoever else is at it.
func TestNobodyIsBlamedForAProcessThatTheBridgeEnds(t *testing.T) {
	s := newStdio(t, "script", quick)
	c, err := s.get(t.Context(), tool(""))
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan error)
	go func() { _, err := s.Do(t.Context(), by("bob", "never answered"), nil); lost <- err }()
	for len(c.waitingIDs()) == 0 {
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.LegacyOffer(ctx, tool(""))
	if f, ok := (<-lost).(*upstream.Failure); !ok || f.Cause != upstream.Lost {
		t.Errorf("%+v", f)
	}
	s.leave(c, by("alice", "given up"))
	if blamed(s, "bob") || blamed(s, "alice") {
		t.Errorf("blamed: %v", s.crashes.parties)
	}
}

func TestRefusalsGrowAndAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashes()
		exit := by("alice", "exit")
		run := uint64(0)
		end := func() time.Duration {
			run++
			for range 3 { // of several requests one counts
				c.strike(c.suspectOf(exit), run)
			}
			wait, _ := c.refuses(exit)
			return wait
		}
		for _, want := range []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			if wait := end(); wait > 0 || want > 0 {
				if wait != want*time.Second {
					t.Errorf("after %d ends: %s", run, wait)
				}
				time.Sleep(wait)
			}
		}
		if wait, _ := c.refuses(by("alice", "pid")); wait > 0 {
			t.Error("one tool has all others refused")
		}
		time.Sleep(blameLasts + time.Second)
		if wait := end(); wait > 0 {
			t.Errorf("refused for %s after a minute in peace", wait)
		}
		time.Sleep(blameLasts + time.Second)
		if wait, _ := c.refuses(exit); wait > 0 || len(c.parties) > 0 || c.some.Load() {
			t.Error("somebody is remembered for ever")
		}
	})
}

// Whoever was at a process may tell of its end when the next one has ended, too.
func TestAnEndThatIsToldOfLateIsCountedOnce(t *testing.T) {
	c := newCrashes()
	of := suspect{"alice", 1}
	for _, run := range []uint64{1, 2, 1, 2, 1} {
		if c.strike(of, run) {
			t.Fatal("two ends are counted as more")
		}
	}
	if !c.strike(of, 3) {
		t.Error("a third is not counted")
	}
}

func TestWhoIsBlamedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashes()
		for i := range 2 * maxParties {
			c.strike(suspect{fmt.Sprint(i), 1}, uint64(i+1))
		}
		for kind := range uint64(2 * maxKinds) {
			c.strike(suspect{"0", kind}, kind+1)
		}
		if len(c.parties) != maxParties || len(c.parties["0"].kinds) != maxKinds {
			t.Errorf("%d parties, %d kinds of one", len(c.parties), len(c.parties["0"].kinds))
		}
		if wait, _ := c.refuses(by("0", "anything")); wait <= 0 {
			t.Error("what is not remembered by itself does not count at all")
		}
		time.Sleep(longestHold + 2*blameLasts)
		c.strike(suspect{"new", 1}, 1)
		if len(c.parties) != 1 {
			t.Errorf("%d parties are remembered for ever", len(c.parties))
		}
	})
	s := newStdio(t, "script", Options{})
	child := &child{}
	s.child = child
	for i := range 2 * maxLeft {
		s.leave(child, by(fmt.Sprint(i), "x"))
	}
	if s.child = nil; len(child.left) != maxLeft {
		t.Errorf("%d have left something", len(child.left))
	}
}
