package stdio

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

func tool(name string) *upstream.Call { return call(mcp.MethodToolsCall, `"name":"`+name+`"`) }

// quick restarts children at once.
var quick = Options{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}

func pidOf(t *testing.T, s *Client) int64 {
	t.Helper()
	pid, ok := rawjson.Int(rawjson.Get(mustDo(t, s, tool("pid")).Result, "pid"))
	if !ok {
		t.Fatal("no pid")
	}
	return pid
}

func TestGoSDKServerOverStdio(t *testing.T) {
	s := newStdio(t, "sdk", Options{})
	v := negotiate.NewProber(negotiate.Options{}).Probe(t.Context(), "", upstream.NewPeer(s, *call("", "")))
	if !v.Usable() {
		t.Fatalf("verdict %+v", v)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			ans, err := s.Do(t.Context(), call(mcp.MethodToolsCall, `"name":"echo",`+"\n"+`"arguments":{"text":"hi"}`), nil)
			if err != nil || !strings.Contains(string(ans.Result), `"hi"`) {
				t.Errorf("%+v, %v", ans, err)
			}
		})
	}
	wg.Wait()
}

func TestE45ALegacyChildIsRecognisedAndReplaced(t *testing.T) {
	s := newStdio(t, "legacy", quick)
	v := negotiate.NewProber(negotiate.Options{}).Probe(t.Context(), "", upstream.NewPeer(s, *call("", "")))
	if v.Era != negotiate.Legacy || !strings.Contains(v.Err.Error(), "2025-03-26") {
		t.Fatalf("verdict %+v", v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		t.Fatal("the process in a legacy session was kept")
	}
}

// An older version may have taken the place of a modern one, and end at what the modern one answers.
func TestE45ACommandThatKeepsEndingAtDiscoverMayBeAnOlderVersion(t *testing.T) {
	s := newStdio(t, "older", Options{Dir: t.TempDir(), MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	mustDo(t, s, call(mcp.MethodDiscover, ""))
	_, _ = s.Do(t.Context(), tool("exit"), nil)
	_, err := s.Do(t.Context(), tool("pid"), nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.NotModern || f.Sent {
		t.Errorf("a call gets %v", err)
	}
	v := negotiate.NewProber(negotiate.Options{}).Probe(t.Context(), "", upstream.NewPeer(s, *call("", "")))
	if v.Proven() != negotiate.Legacy || !strings.Contains(v.Err.Error(), "2025-03-26") {
		t.Errorf("verdict %+v", v)
	}
}

// One that is slow to come up again, and of the era that is asked for first, is not made a legacy server by the bridge.
func TestE45ASlowSuccessorIsAskedOneThing(t *testing.T) {
	for name, start := range map[string]time.Duration{"in time": 10 * time.Second, "too slow": 0} {
		t.Run(name, func(t *testing.T) {
			s := newStdio(t, "pinned", Options{Dir: t.TempDir(), MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, Ping: 200 * time.Millisecond, Start: start})
			mustDo(t, s, call(mcp.MethodDiscover, ""))
			_, _ = s.Do(t.Context(), tool("exit"), nil)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			ans, err := s.Do(ctx, tool("pid"), nil)
			if f, ok := err.(*upstream.Failure); start > 0 && err != nil || ok && f.Cause == upstream.NotModern {
				t.Errorf("a call gets %+v, %v", ans, err)
			}
		})
	}
}

// A legacy server in the place of a modern one is given nothing that was for that, though it does not say what it is.
func TestE45ASilentSuccessorGetsNothing(t *testing.T) {
	dir := t.TempDir()
	s := newStdio(t, "laconic", Options{Dir: dir, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, Ping: 50 * time.Millisecond})
	mustDo(t, s, call(mcp.MethodDiscover, ""))
	_, _ = s.Do(t.Context(), tool("exit"), nil)
	_, err := s.Do(t.Context(), tool("pid"), nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.NotModern || f.Sent {
		t.Errorf("a call gets %v", err)
	}
	for range 2 { // all who ask learn it
		v := negotiate.NewProber(negotiate.Options{Timeout: 40 * time.Millisecond}).Probe(t.Context(), "", upstream.NewPeer(s, *call("", "")))
		if v.Proven() != negotiate.Legacy || !strings.Contains(v.Err.Error(), "2025-03-26") {
			t.Errorf("verdict %+v", v)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "executed")); err == nil {
		t.Error("it has executed a call")
	}
}

// A process that is not ready is not ended for that: the next one would not be, either.
func TestAProcessThatRefusesBothIsNotEnded(t *testing.T) {
	s := newStdio(t, "warming", quick)
	prober := negotiate.NewProber(negotiate.Options{})
	for range 10 {
		if v := prober.Again(t.Context(), "", upstream.NewPeer(s, *call("", ""))); v.Usable() {
			return
		}
	}
	t.Error("it is never seen to come up")
}

// The process of a session is one of a command that others have seen before.
func TestAProcessOfAModernCommandIsAskedThatFirst(t *testing.T) {
	s := newStdio(t, "modern", Options{Modern: true})
	pidOf(t, s)
}

// A server of both eras that is slow to come up at first is not taken for a legacy one, or not for long.
func TestE45ASlowChildIsNoLegacyServer(t *testing.T) {
	s := newStdio(t, "slow", Options{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	prober := negotiate.NewProber(negotiate.Options{Timeout: 400 * time.Millisecond}) // and 300 for server/discover
	for range 100 {
		if v := prober.Again(t.Context(), "", upstream.NewPeer(s, *call("", ""))); v.Usable() {
			return
		}
	}
	t.Error("it is never seen")
}

func TestE45ASilentChildIsLegacy(t *testing.T) {
	s := newStdio(t, "script", quick) // answers no discover
	v := negotiate.NewProber(negotiate.Options{Timeout: 200 * time.Millisecond}).Probe(t.Context(), "", upstream.NewPeer(s, *call("", "")))
	if v.Era != negotiate.Legacy || v.Err == nil {
		t.Fatalf("verdict %+v", v)
	}
}

func TestE48ACrashFailsWhatIsInFlightAndTheNextCallStartsAnew(t *testing.T) {
	s := newStdio(t, "script", quick)
	first := pidOf(t, s)
	_, err := s.Do(t.Context(), tool("exit"), nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Lost || !f.Sent {
		t.Fatalf("error %v", err)
	}
	if second := pidOf(t, s); second == first {
		t.Fatal("the same process answered")
	}
}

func TestAnAnswerBeforeTheEndCounts(t *testing.T) {
	s := newStdio(t, "script", quick)
	for range 10 {
		c, err := s.get(t.Context(), tool(""))
		if err != nil {
			t.Fatal(err)
		}
		mustDo(t, s, tool("answer and exit"))
		<-c.ended
	}
}

func TestGarbageIsSkipped(t *testing.T) {
	s := newStdio(t, "script", Options{})
	mustDo(t, s, tool("garbage"))
}

func TestMessagesBeyondTheLimitFailTheirCallOnly(t *testing.T) {
	s := newStdio(t, "script", Options{MaxLine: 32 << 10})
	pid := pidOf(t, s)
	for name, cause := range map[string]upstream.Cause{"long": upstream.TooLarge, "long, id last": upstream.TooLarge, "malformed": upstream.BadResponse} {
		_, err := s.Do(t.Context(), tool(name), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != cause {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if pidOf(t, s) != pid {
		t.Fatal("the process was replaced")
	}
}

// lockedBuffer is a log that a child's goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestE50StderrIsLoggedLineByLineAndBounded(t *testing.T) {
	var log lockedBuffer
	s := newStdio(t, "script", Options{Log: zerolog.New(&log)})
	mustDo(t, s, tool("stderr"))
	_ = s.Close()
	text := log.b.String()
	if !strings.Contains(text, "error: all is well") || strings.Count(text, "y") > maxStderrLine+20 {
		t.Fatalf("%d bytes of log", len(text))
	}
}

func TestA36CloseEndsTheChild(t *testing.T) {
	for _, mode := range []string{"script", "stubborn"} {
		s := newStdio(t, mode, Options{Grace: 50 * time.Millisecond})
		c, err := s.get(t.Context(), tool(""))
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() {
			_, err := s.Do(context.Background(), tool("never answered"), nil)
			failed <- err
		}()
		for len(c.waitingIDs()) == 0 {
		}
		_ = s.Close()
		if f, ok := (<-failed).(*upstream.Failure); !ok || f.Cause != upstream.Canceled {
			t.Fatalf("%s: %v", mode, f)
		}
		if !testprocess.Gone(c.cmd.Process.Pid) {
			t.Fatalf("%s: the process still runs", mode)
		}
		if _, err := s.Do(t.Context(), tool("pid"), nil); err == nil {
			t.Fatal("a closed client made a call")
		}
	}
}

// What is sent to its group does not reach a child that has left it.
func TestA36CloseEndsAChildThatLeftItsGroup(t *testing.T) {
	s := newStdio(t, "deserter", Options{Grace: 50 * time.Millisecond})
	mustDo(t, s, tool("pid")) // it has
	c, err := s.get(t.Context(), tool(""))
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if !testprocess.Gone(c.cmd.Process.Pid) {
		t.Fatal("the process still runs")
	}
}

func (p *pipe) waitingIDs() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.waiting {
		ids = append(ids, string(id))
	}
	return ids
}

func TestACommandThatCannotBeStartedSaysWhy(t *testing.T) {
	for command, text := range map[string]string{"no-such-program-anywhere": "no such program", t.TempDir(): "executed"} {
		s, err := New(Options{Command: command, Args: []string{"--token=secret"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Do(t.Context(), tool("x"), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Unreachable || f.Sent || !strings.Contains(f.Error(), text) || strings.Contains(f.Error(), "secret") {
			t.Errorf("%s: %v", command, err)
		}
		_ = s.Close()
	}
	if _, err := New(Options{}); err == nil {
		t.Error("an empty command was accepted")
	}
}

func TestE48RestartsBackOff(t *testing.T) {
	s := newStdio(t, "crash", Options{MinBackoff: time.Hour, MaxBackoff: time.Hour})
	for range 2 {
		_, err := s.Do(t.Context(), tool("x"), nil)
		f, ok := err.(*upstream.Failure)
		if !ok || f.Cause != upstream.Lost && f.Cause != upstream.Unreachable {
			t.Fatalf("error %v", err)
		}
		if f.Cause == upstream.Unreachable && (f.Sent || f.RetryAfter <= 0 || !strings.Contains(f.Error(), "keeps ending")) {
			t.Fatalf("%+v", f)
		}
	}
}
