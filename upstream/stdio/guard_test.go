package stdio

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/testprocess"
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
