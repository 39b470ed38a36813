package stdio

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// listener keeps what a process writes.
type listener struct {
	lines chan string
	large chan jsonrpc.ID
	ended chan struct{}
}

func newListener() *listener {
	return &listener{make(chan string, 16), make(chan jsonrpc.ID, 16), make(chan struct{})}
}

func (l *listener) Line(line []byte)          { l.lines <- string(line) }
func (l *listener) TooLarge(id jsonrpc.ID)    { l.large <- id }
func (l *listener) Refused(jsonrpc.ID, error) {}
func (l *listener) Ended()                    { close(l.ended) }

// startLines runs the test binary as a server of a kind.
func startLines(t *testing.T, mode string, opt Options) (*Lines, *listener) {
	t.Helper()
	s := newStdio(t, mode, opt)
	to := newListener()
	l, err := StartLines(s.opt, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, to
}

func TestLinesGoToAProcessAndComeFromItAsTheyAre_E31(t *testing.T) {
	l, to := startLines(t, "legacy", Options{MaxLine: 100})
	if l.Send([]byte("{\"jsonrpc\":\"2.0\",\n\"id\":7,\"method\":\"initialize\"}")) != nil {
		t.Error("the process is gone")
	}
	if got := <-to.lines; got != `{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-03-26"}}` {
		t.Errorf("it wrote %s", got)
	}
	_ = l.Send([]byte(`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 90) + `","method":"other"}`))
	<-to.large
	l.Close()
	<-to.ended
	if l.Send([]byte(`{}`)) == nil {
		t.Error("a line reached a process that has ended")
	}
}

func TestTheEndOfAProcessIsHeard(t *testing.T) {
	_, to := startLines(t, "crash", Options{})
	<-to.ended
}

// chatter is how many lines a process writes that waits for no answer to any. They fit
// into a pipe, and are more than wait to be written.
const chatter = 8 * maxOutgoing

// answering answers each line, but nothing before the process has ended.
type answering struct {
	*listener
	line chan *Lines
	of   *Lines
	n    int
}

func (a *answering) Line([]byte) {
	if a.n++; a.of == nil {
		a.of = <-a.line
		<-a.of.process.exited
	}
	_ = a.of.Send([]byte("{}"))
}

func TestAnswersToAProcessThatHasEndedHoldNobodyUp(t *testing.T) {
	to := &answering{listener: newListener(), line: make(chan *Lines, 1)}
	l, err := StartLines(newStdio(t, "chatter", Options{}).opt, to)
	if err != nil {
		t.Fatal(err)
	}
	to.line <- l
	<-to.ended
	l.Close()
	if to.n != chatter {
		t.Errorf("of %d lines %d were heard", chatter, to.n)
	}
}

// Whoever closes a process that has ended waits for nothing that it has said.
func TestAProcessThatHasEndedCanBeClosedWhileItsLinesAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		p := &process{
			speech: newPipe(1, nil, zerolog.Nop()), stdin: stdin, grace: time.Second,
			quit: make(chan struct{}), deaf: make(chan struct{}), exited: make(chan struct{}),
		}
		close(p.exited)
		go p.stop()
		p.shutdown(make(chan struct{})) // its lines are handled for ever
	})
}

func TestACommandThatIsNotThereIsAFailure(t *testing.T) {
	_, err := StartLines(Options{Command: "/no/such/program"}, newListener())
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Unreachable || !strings.Contains(f.Detail, "there is no such program") {
		t.Errorf("%v", err)
	}
}

func TestTheIDOfALargeResponseIsNotThatOfAQuestion(t *testing.T) {
	for text, want := range map[string]jsonrpc.ID{
		`{"jsonrpc":"2.0","id":"a","result":{"x":"`:                                   `"a"`,
		`{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage","params":{"x":"`: "",
	} {
		if got := responseID([]byte(text), nil); got != want {
			t.Errorf("of %s it is %s", text, got)
		}
	}
}

func TestARequestOfAModernClientGoesOutAsItIs_A11(t *testing.T) {
	s := newStdio(t, "sdk", Options{})
	ask := &upstream.Call{Method: mcp.MethodToolsList, Params: []byte(`{"_meta":{"` + mcp.MetaProtocolVersion + `":"2099-01-01","` + mcp.MetaClientCapabilities + `":{}}}`)}
	ans, err := s.Verbatim(t.Context(), ask, nil)
	if err != nil || ans.Error == nil || ans.Error.Code != mcp.CodeUnsupportedVersion {
		t.Errorf("its version was not its own: %+v, %v", ans, err)
	}
	if err := s.Notify(t.Context(), &upstream.Call{Method: "notifications/x"}); err != nil {
		t.Error(err)
	}
}
