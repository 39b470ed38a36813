package mount

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// processMode makes the test binary a modern server over stdio.
const processMode = "MOUNT_PROCESS"

// The modes: a good server, one that prints what is no message around each
// answer, one that reads and never answers, and servers of the Go SDK.
const (
	good      = "good"
	garbage   = "garbage"
	silent    = "silent"
	sdkModern = "sdk modern"
	sdkLegacy = "sdk legacy"
	sdkDual   = "sdk dual-era"
	parrot    = "parrot"     // a legacy one that says what it was told
	browser   = "browser"    // no server: one whose person agrees to everything
	installed = "installed " // and the name of a file that has the mode
)

// actAsProcess serves until its input ends. The tool "pid" tells the process,
// "crash" ends it,
// "nth" tells which call it is that the process has read,
// "log" logs before it answers, "vendor" says what is of no request, "never" has no answer, "together"
// answers two calls at once.
func actAsProcess(mode string) {
	if name, ok := strings.CutPrefix(mode, installed); ok {
		text, _ := os.ReadFile(name)
		mode = string(text)
	}
	switch mode {
	case browser:
		if resp, err := http.Get(os.Args[1]); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		return
	case sdkModern:
		_ = changeable(peers.New(peers.ServerOptions{})).MCP.Run(context.Background(), &sdk.StdioTransport{})
		return
	case sdkLegacy:
		_ = newLegacy("2025-06-18", "2025-03-26", "2024-11-05").Run(context.Background(), &sdk.StdioTransport{})
		return
	case sdkDual:
		_ = newLegacy().Run(context.Background(), &sdk.StdioTransport{})
		return
	case parrot:
		repeat()
		return
	case "lists", "ends", "mute", "late":
		older(mode)
		return
	}
	var waiting [][]byte
	calls := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal(lines.Bytes(), &msg)
		if msg.Params.Name == "together" {
			if waiting = append(waiting, bytes.Clone(lines.Bytes())); len(waiting) == 2 {
				together(waiting)
				waiting = nil
			}
			continue
		}
		if msg.Params.Name == "crash" {
			os.Exit(3)
		}
		if msg.ID == nil || mode == silent || msg.Params.Name == "never" {
			continue
		}
		if mode == garbage {
			fmt.Fprintf(os.Stdout, "Listening on port 80…\n\x00\xff\xfe{\"jsonrpc\":\n[]\n\"x\"\n%s\n", strings.Repeat("x", 70_000))
			fmt.Fprintln(os.Stderr, "warning \x1b[31m\xff")
		}
		if msg.Params.Name == "log" {
			fmt.Fprintln(os.Stdout, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"said"}}`)
		}
		if msg.Params.Name == "vendor" {
			fmt.Fprintln(os.Stdout, `{"jsonrpc":"2.0","method":"notifications/vendor","params":{"text":"said"}}`)
		}
		result := `{"resultType":"complete","content":[{"type":"text","text":"pid ` + fmt.Sprint(os.Getpid()) + `"}]}`
		if msg.Params.Name == "nth" {
			calls++
			result = `{"resultType":"complete","content":[{"type":"text","text":"nth ` + fmt.Sprint(calls) + `"}]}`
		}
		if msg.Method == "server/discover" && mode == "unready" {
			mode = good
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not ready yet"}}`+"\n", msg.ID)
			continue
		}
		if msg.Method == "server/discover" {
			result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},"ttlMs":0,"cacheScope":"private"}`
		}
		fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", msg.ID, result)
	}
}

// steps is how often progress is told of a call.
const steps = 5

// together answers calls after it has told each of its progress, in turn, and each of whose that is.
func together(calls [][]byte) {
	for step := range steps + 1 {
		for _, line := range calls {
			var msg struct {
				ID     json.RawMessage
				Params struct {
					Arguments struct{ Who string }
					Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
				}
			}
			_ = json.Unmarshal(line, &msg)
			if step < steps {
				fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`+"\n",
					msg.Params.Meta.ProgressToken, step, msg.Params.Arguments.Who)
				continue
			}
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`+"\n", msg.ID)
		}
	}
}

// repeat answers every request with its own text, but for server/discover.
func repeat() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &msg)
		said, _ := json.Marshal(lines.Text())
		switch {
		case msg.Method == "server/discover":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`+"\n", msg.ID)
		case msg.ID != nil:
			fmt.Fprintf(os.Stdout, `{ "result": {"protocolVersion":"2025-06-18","said":%s},"id":%s,"jsonrpc":"2.0" , "vendor": [1,  2] }`+"\n", said, msg.ID)
		}
	}
}

// process is a server of this mode as an upstream.
func process(t *testing.T, mode string, perSession int) Options {
	t.Helper()
	return Options{Command: &Command{PerSession: perSession, Stdio: stdio.Options{
		Command: os.Args[0], Env: []string{processMode + "=" + mode, "GORACE=atexit_sleep_ms=0"}, MaxLine: 64 << 10,
		MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
	}}}
}

func call(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

const setLevel = `{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}`

// session opens a session and fails the test without one.
func session(t *testing.T, url string) string {
	t.Helper()
	id, body := initialize(t, url, "2025-06-18", `{}`)
	if id == "" {
		t.Fatalf("no session: %s", body)
	}
	return id
}

// pidOf returns what the process of a session says of itself.
func pidOf(t *testing.T, url, session string) string {
	t.Helper()
	_, body := post(t, url, session, call("pid"))
	_, rest, ok := strings.Cut(body, "pid ")
	pid, _, _ := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no pid in %s", body)
	}
	return pid
}

func TestSessionsShareOneProcessUnlessToldOtherwise_E49(t *testing.T) {
	for _, perSession := range []int{0, 2} {
		_, url := serve(t, process(t, good, perSession))
		a, b := session(t, url), session(t, url)
		shared := pidOf(t, url, a) == pidOf(t, url, b)
		if shared != (perSession == 0) {
			t.Errorf("with %d processes for sessions: shared %v", perSession, shared)
		}
		if stateless := pidOf(t, url, ""); perSession > 0 && (stateless == pidOf(t, url, a) || stateless == pidOf(t, url, b)) {
			t.Error("a request without a session reached the process of one")
		}
	}
}

func TestAToolThatCrashesAgainAndAgainShutsNobodyElseOut(t *testing.T) {
	opt := process(t, good, 0)
	opt.Command.Stdio.MaxBackoff = time.Hour
	_, url := serve(t, opt)
	alice, bob := session(t, url), session(t, url)
	first := pidOf(t, url, bob)
	for range 20 { // each doubles the time until the next start
		_, _ = post(t, url, alice, call("crash"))
	}
	last := pidOf(t, url, bob)
	if last == first {
		t.Fatal("nothing crashed")
	}
	if _, body := post(t, url, alice, call("crash")); !strings.Contains(body, "in a row under requests like this one") {
		t.Errorf("the tool gets %s", body)
	}
	if pidOf(t, url, bob) != last || pidOf(t, url, alice) != last {
		t.Error("the process ended once more")
	}
}

func TestProcessesOfSessionsAreCappedAndEndWithThem_Q4(t *testing.T) {
	_, url := serve(t, process(t, good, 1))
	a := session(t, url)
	pid := pidOf(t, url, a)
	if id, body := initialize(t, url, "2025-06-18", `{}`); id != "" || !strings.Contains(body, "all 1 processes of this server are in use (limits.children)") {
		t.Errorf("a session above the cap gets %q %s", id, body)
	}
	if got := pidOf(t, url, a); got != pid {
		t.Error("the refusal cost the first session its process")
	}
	if status, _ := send(t, http.MethodDelete, url, a, ""); status != http.StatusNoContent {
		t.Errorf("DELETE answers %d", status)
	}
	for deadline := patience(t); ; { // the place is free when the process has really ended
		if id, _ := initialize(t, url, "2025-06-18", `{}`); id != "" {
			break
		}
		if deadline.Err() != nil {
			t.Fatal("the place is not given back")
		}
	}
	var n int
	_, _ = fmt.Sscan(pid, &n)
	if !testprocess.Gone(n) {
		t.Errorf("process %d outlives its session", n)
	}
}

func TestEndingTheMountEndsEveryProcess_A36(t *testing.T) {
	m, url := serve(t, process(t, good, 2))
	var pids []int
	for range 2 {
		var n int
		_, _ = fmt.Sscan(pidOf(t, url, session(t, url)), &n)
		pids = append(pids, n)
	}
	if err := m.Shutdown(patience(t)); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if !testprocess.Gone(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestLogMessagesOfASharedProcessReachNobodyWhenTwoSessionsWantThem_C8(t *testing.T) {
	for _, tc := range []struct {
		name       string
		perSession int
		wanting    int  // sessions with a level
		calling    bool // the second one has just called
		delivered  bool
	}{
		{"one wants them", 0, 1, true, true},
		{"another wants them but does nothing", 0, 2, false, true},
		{"another could get them", 0, 2, true, false},
		{"each has a process", 2, 2, true, true},
	} {
		_, url := serve(t, process(t, good, tc.perSession))
		a, b := session(t, url), session(t, url)
		for _, s := range []string{a, b}[:tc.wanting] {
			if status, body := post(t, url, s, setLevel); status != http.StatusOK || strings.Contains(body, "error") {
				t.Fatalf("setLevel answers %d %s", status, body)
			}
		}
		if tc.calling {
			pidOf(t, url, b)
		}
		if _, body := post(t, url, a, call("log")); strings.Contains(body, "said") != tc.delivered || !strings.Contains(body, "pid ") {
			t.Errorf("%s: delivered %v: %s", tc.name, !tc.delivered, body)
		}
		if status, _ := send(t, http.MethodDelete, url, b, ""); status != http.StatusNoContent {
			t.Errorf("DELETE answers %d", status)
		}
		if _, body := post(t, url, a, call("log")); !strings.Contains(body, "said") {
			t.Errorf("%s: with one session left nothing is delivered: %s", tc.name, body)
		}
	}
}

// TestWhatASharedProcessSaysOfNoRequestReachesNobody: it may be about what somebody else has
// asked before, and the one request that is under way need not be that person's.
func TestWhatASharedProcessSaysOfNoRequestReachesNobody_C9(t *testing.T) {
	for _, tc := range []struct {
		name       string
		perSession int
		sole       bool
		delivered  bool
	}{
		{"all share the process", 0, false, false},
		{"each has a process", 1, false, true},
		{"there is one client only", 0, true, true},
	} {
		opt := process(t, good, tc.perSession)
		opt.Command.Stdio.Sole = tc.sole
		_, url := serve(t, opt)
		if _, body := post(t, url, session(t, url), call("vendor")); strings.Contains(body, "said") != tc.delivered || !strings.Contains(body, "pid ") {
			t.Errorf("%s: delivered %v: %s", tc.name, !tc.delivered, body)
		}
	}
}

func TestWhatAProcessPrintsBesidesMessagesStopsNothing_E46(t *testing.T) {
	_, url := serve(t, process(t, garbage, 0))
	a := session(t, url)
	for range 3 {
		if status, body := post(t, url, a, call("pid")); status != http.StatusOK || !strings.Contains(body, "pid ") {
			t.Errorf("a call answers %d %s", status, body)
		}
	}
}

func TestAProcessThatNeverAnswersFailsInitializeInTime_E45(t *testing.T) {
	opt := process(t, silent, 0)
	opt.Probe = negotiate.Options{Timeout: 200 * time.Millisecond}
	m, url := serve(t, opt)
	if id, body := initialize(t, url, "2025-06-18", `{}`); id != "" || !strings.Contains(body, "-32603") || !strings.Contains(body, `"bridge"`) {
		t.Errorf("initialize answers %q %s", id, body)
	}
	if v := m.Judge(t.Context()); v.Usable() || m.Relayed(&v) {
		t.Errorf("verdict %+v", v)
	}
}

func TestACallThatIsNeverAnsweredFailsAndOthersGoOn(t *testing.T) {
	opt := process(t, good, 0)
	opt.Bridge.Limits.Flow.Round = 100 * time.Millisecond
	_, url := serve(t, opt)
	a, b := session(t, url), session(t, url)
	stuck := make(chan string, 1)
	go func() {
		_, body := post(t, url, a, call("never"))
		stuck <- body
	}()
	pid := inTime(t, url, b)
	if body := <-stuck; !strings.Contains(body, "-32603") || !strings.Contains(body, "timeouts.round") && !strings.Contains(body, "in time") {
		t.Errorf("the call that is never answered gets %s", body)
	}
	if inTime(t, url, a) != pid {
		t.Error("the process did not survive the call")
	}
}

// inTime is pidOf where calls are given so little time that a busy machine may need more
// than one.
func inTime(t *testing.T, url, session string) string {
	t.Helper()
	for deadline := patience(t); deadline.Err() == nil; {
		if _, body := post(t, url, session, call("pid")); strings.Contains(body, "pid ") {
			_, rest, _ := strings.Cut(body, "pid ")
			pid, _, _ := strings.Cut(rest, `"`)
			return pid
		}
	}
	t.Fatal("no call is answered")
	return ""
}

// older is a legacy server that takes server/discover in one way or another.
func older(mode string) {
	var asked json.RawMessage
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &msg)
		said, _ := json.Marshal(lines.Text())
		if msg.Method == "initialize" && asked != nil {
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28","2025-06-18"],"capabilities":{}}}`+"\n", asked)
		}
		switch {
		case msg.Method == "server/discover":
			switch mode {
			case "lists":
				fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2025-06-18"],"capabilities":{}}}`+"\n", msg.ID)
			case "ends":
				os.Exit(1)
			case "late": // a modern one as well, once it is asked initialize
				asked = msg.ID
			}
		case msg.ID != nil:
			fmt.Fprintf(os.Stdout, `{ "result": {"protocolVersion":"2025-06-18","said":%s},"id":%s,"jsonrpc":"2.0" , "vendor": [1,  2] }`+"\n", said, msg.ID)
		}
	}
}
