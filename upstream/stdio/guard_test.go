package stdio

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

func TestAStuckChildIsFoundAndReplaced(t *testing.T) {
	var log lockedBuffer
	opt := quick
	opt.Ping, opt.Grace, opt.Log = 50*time.Millisecond, 50*time.Millisecond, zerolog.New(&log)
	s := newStdio(t, "script", opt)
	first := pidOf(t, s)
	freeze(t, int(first))
	c, err := s.get(t.Context(), tool(""))
	if err != nil {
		t.Fatal(err)
	}
	call := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := s.Do(ctx, tool("pid"), nil)
		call <- err
	}()
	if f, ok := (<-call).(*upstream.Failure); !ok || f.Cause != upstream.Timeout && (f.Cause != upstream.Lost || !strings.Contains(f.Error(), "did not answer a ping")) {
		t.Errorf("its call ends with %v", f)
	}
	<-c.ended
	if second := pidOf(t, s); second == first {
		t.Error("it was not replaced")
	}
	_ = s.Close()
	if text := log.b.String(); strings.Count(text, "does not answer a ping") != 1 {
		t.Errorf("the log says\n%s", text)
	}
}

// freeze stops a child, and waits until all its threads have stopped: on a busy machine one
// may answer meanwhile.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := testprocess.Freeze(pid); err != nil {
		t.Fatal(err)
	}
}

func TestAChildThatDoesOneThingAtATimeIsNotStuck(t *testing.T) {
	opt := quick
	opt.Ping = 50 * time.Millisecond
	s := newStdio(t, "script", opt)
	first := pidOf(t, s)
	mustDo(t, s, tool("slow"))
	if second := pidOf(t, s); second != first {
		t.Error("it was replaced")
	}
}

// pinged is a client of a server that has come up, and whose process has ended once since.
func pinged(t *testing.T, mode string, every time.Duration) *Client {
	t.Helper()
	opt := quick
	opt.Dir, opt.Ping = t.TempDir(), every
	s := newStdio(t, mode, opt)
	mustDo(t, s, call(mcp.MethodDiscover, ""))
	c, err := s.get(t.Context(), tool(""))
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	<-c.ended
	return s
}

// blamed reports whether processes have ended under a tenant.
func blamed(s *Client, tenant string) bool {
	s.crashes.mu.Lock()
	defer s.crashes.mu.Unlock()
	return s.crashes.parties[tenant] != nil
}

// comingUp runs a test with a client whose child has been started anew, and is silent.
func comingUp(t *testing.T, every time.Duration, f func(t *testing.T, w *wire, s *Client, c *child)) {
	withWire(t, func(t *testing.T, w *wire) {
		s, err := New(Options{Command: "slow", Ping: every, Start: every * 3 / 2})
		if err != nil {
			t.Fatal(err)
		}
		c := &child{pipe: w.pipe, ready: make(chan struct{}), process: &process{cmd: &exec.Cmd{Process: &os.Process{}}, quit: make(chan struct{})}}
		s.child = c
		go s.attend(c)
		f(t, w, s, c)
		w.end()
	})
}

// stopped reports whether the bridge has ended a child.
func stopped(c *child) bool {
	synctest.Wait()
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

// expect reads the client's next line, which is of a method.
func (w *wire) expect(method string) jsonrpc.Message {
	w.t.Helper()
	m := w.receive()
	if m.Method != method {
		w.t.Fatalf("it is asked %s, not %s", m.Method, method)
	}
	return m
}

// Calls that wait for a process to come up are given to it when it has answered, and it is not asked whether it is stuck meanwhile.
func TestAProcessThatComesUpSlowlyIsNotStuck(t *testing.T) {
	const every = time.Second
	comingUp(t, every, func(t *testing.T, w *wire, s *Client, c *child) {
		done := make(chan error, 1)
		go func() {
			_, err := s.Do(t.Context(), by("bob", "pid"), nil)
			done <- err
		}()
		greeting, shake := w.expect(mcp.MethodDiscover), w.expect(mcp.MethodInitialize)
		time.Sleep(every)
		if stopped(c) {
			t.Fatal("it was ended")
		}
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, greeting.ID)
		w.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, shake.ID)
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, w.expect(mcp.MethodToolsCall).ID)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if blamed(s, "bob") {
			t.Error("who waited for it is blamed")
		}
	})
}

// One that hangs is replaced, whoever waits for it, and for as long as he likes. The next one is given twice the time, as it may have
// been slow, until one has come up.
func TestAProcessThatHangsAtItsStartIsReplaced(t *testing.T) {
	comingUp(t, time.Second, func(t *testing.T, w *wire, s *Client, c *child) {
		patience := s.waits()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.Listen(ctx, call(mcp.MethodListen, ""), nil) }()
		w.expect(mcp.MethodDiscover)
		w.expect(mcp.MethodInitialize)
		time.Sleep(patience + 2*lateness)
		if !stopped(c) || s.waits() != 2*patience {
			t.Errorf("ended %v, and the next one has %s", stopped(c), s.waits())
		}
		cancel()
		s.learns(patience / 4)
		if s.waits() != patience {
			t.Errorf("one came up at once, and the next one has %s", s.waits())
		}
	})
}

// What a silent one has shown is for who asks next, whenever that is.
func TestWhatASilentProcessHasShownWaitsForWhoAsks_E45(t *testing.T) {
	comingUp(t, time.Second, func(t *testing.T, w *wire, s *Client, c *child) {
		w.expect(mcp.MethodDiscover)
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18"}}`, w.expect(mcp.MethodInitialize).ID)
		<-c.quit
		w.end()
		<-c.ready
		time.Sleep(evident / 2)
		for range 2 {
			if offer := s.LegacyOffer(t.Context(), call("", "")); !slices.Equal(offer.Versions, []string{"2025-06-18"}) {
				t.Errorf("%+v", offer)
			}
		}
		time.Sleep(believed)
		if s.greetings.known() != nil {
			t.Error("it is believed for good")
		}
	})
}

// That the bridge ended one shows nothing of the command.
func TestAProcessThatTheBridgeEndedShowsNothing_E45(t *testing.T) {
	for _, g := range []greetings{{}, {ended: 1}, {ended: endsAtDiscover, offered: []string{"2025-06-18"}}} {
		after := g
		hung := &child{}
		hung.ours.Store(true)
		if after.over(hung); after.ended != g.ended || after.known() != nil {
			t.Errorf("%+v became %+v", g, after)
		}
	}
}

// Nobody can tell whether a server is of the era that asked first. The next one is given more time.
func TestWhoWasAskedBothWhileItCameUpIsEnded_E45(t *testing.T) {
	for _, first := range []string{mcp.MethodDiscover, mcp.MethodInitialize} {
		comingUp(t, time.Second, func(t *testing.T, w *wire, s *Client, c *child) {
			patience := s.waits()
			answers := map[string]string{
				mcp.MethodDiscover:   fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"]}}`, w.expect(mcp.MethodDiscover).ID),
				mcp.MethodInitialize: fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`, w.expect(mcp.MethodInitialize).ID),
			}
			w.send("%s", answers[first])
			delete(answers, first)
			for _, other := range answers {
				w.send("%s", other)
			}
			if !stopped(c) || s.waits() != 2*patience {
				t.Errorf("%s first: ended %v, and the next one has %s", first, stopped(c), s.waits())
			}
			if s.greetings.over(c); s.greetings.known() != nil {
				t.Error("it counts as a legacy server")
			}
		})
	}
}

// A look that has begun before it came up does not make it what it is not, or end it under the calls of others.
func TestE45WhoHasComeUpIsNotAskedInitialize(t *testing.T) {
	comingUp(t, time.Second, func(t *testing.T, w *wire, s *Client, c *child) {
		offer := make(chan negotiate.Offer, 1)
		go func() { offer <- s.LegacyOffer(t.Context(), call("", "")) }()
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"]}}`, w.expect(mcp.MethodDiscover).ID)
		select {
		case offer := <-offer:
			if !offer.Late || offer.Versions != nil {
				t.Errorf("%+v", offer)
			}
		default:
			t.Error("it is asked")
		}
		if stopped(c) {
			t.Error("it was ended")
		}
	})
}

func TestAProcessThatNeverComesUpIsReplacedAndNobodyBlamed(t *testing.T) {
	s := pinged(t, "mute", 50*time.Millisecond)
	runs := func() uint64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.runs
	}
	for runs() < freeEnds+5 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := s.Do(ctx, by("bob", "pid"), nil)
		cancel()
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Timeout && f.Cause != upstream.Lost {
			t.Fatalf("a call that waits for it ends with %v", err)
		}
	}
	if blamed(s, "bob") {
		t.Error("who waited for it is blamed")
	}
}

// A call that waits for a process to come up has been sent nowhere.
func TestACallWaitsForAProcessNoLongerThanItMay(t *testing.T) {
	s := pinged(t, "mute", time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Do(ctx, by("bob", "pid"), nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Timeout || f.Sent {
		t.Errorf("%+v", err)
	}
	if blamed(s, "bob") {
		t.Error("who waited for it is blamed")
	}
}

// A server that was modern a moment ago is not a legacy one because it is silent.
func TestASilentChildThatHasAnsweredIsNotCalledLegacy(t *testing.T) {
	s := newStdio(t, "sdk", Options{Grace: 50 * time.Millisecond})
	prober := negotiate.NewProber(negotiate.Options{Timeout: 5 * time.Second})
	if v := prober.Probe(t.Context(), "", upstream.NewPeer(s, *call("", ""))); !v.Usable() {
		t.Fatalf("verdict %+v", v)
	}
	c, err := s.get(t.Context(), tool(""))
	if err != nil {
		t.Fatal(err)
	}
	freeze(t, c.cmd.Process.Pid)
	late := negotiate.NewProber(negotiate.Options{Timeout: 100 * time.Millisecond})
	if v := late.Probe(t.Context(), "", upstream.NewPeer(s, *call("", ""))); v.Era != negotiate.Unknown || v.Err == nil || strings.Contains(v.Err.Error(), "does not speak") {
		t.Errorf("verdict %+v", v)
	}
}

func TestACrashAfterAnAnsweredCallIsNoCrashAtTheStart(t *testing.T) {
	s := newStdio(t, "script", Options{MinBackoff: time.Millisecond, MaxBackoff: time.Hour})
	for range 25 { // without a reset the delays would be hours by now
		pidOf(t, s)
		if _, err := s.Do(t.Context(), tool("exit"), nil); err == nil {
			t.Fatal("it did not end")
		}
	}
}

func TestWhatAProcessLeftBehindEndsWithIt(t *testing.T) {
	s := newStdio(t, "script", quick)
	pid, _ := rawjson.Int(rawjson.Get(mustDo(t, s, tool("leave others")).Result, "pid"))
	_, _ = s.Do(t.Context(), tool("exit"), nil)
	_ = s.Close()
	gone(t, int(pid))
}

// gone expects a process to have ended; one that waits for whoever adopted it to
// notice counts.
func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if testprocess.Gone(pid) || err != nil || strings.HasPrefix(string(state), "Z") {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("process %d is still there: %s", pid, state)
		default:
		}
	}
}
