package mount

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// talk is a client that writes lines without waiting for answers.
type talk struct {
	t     *testing.T
	write io.Writer
	lines *bufio.Scanner
}

// talkOver connects a client to a mount, in one of the ways that keep order.
func talkOver(t *testing.T, way string, opt Options) *talk {
	t.Helper()
	m, base := mounted(t, opt)
	conn := ways[way](t, m, base).(*sdk.IOTransport)
	return &talk{t, conn.Writer, bufio.NewScanner(conn.Reader)}
}

// say writes lines, and answered returns the responses to them, by their ids.
func (k *talk) say(lines ...string) {
	k.t.Helper()
	for _, line := range lines { // a frame each
		if _, err := io.WriteString(k.write, line+"\n"); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *talk) answered(n int) map[string]string {
	k.t.Helper()
	answers := map[string]string{}
	for len(answers) < n {
		if !k.lines.Scan() {
			k.t.Fatalf("the connection ended: %v", k.lines.Err())
		}
		line := k.lines.Text()
		if msg, err := jsonrpc.Parse([]byte(line)); err == nil && msg.Kind() == jsonrpc.Response {
			answers[string(msg.ID)] = line
		}
	}
	return answers
}

// open opens a session.
func (k *talk) open() {
	k.t.Helper()
	k.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	k.answered(1)
	k.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// orderly are the ways on which messages come in an order.
var orderly = []string{"stdio", "WebSocket"}

func TestCallsReachACommandInTheOrderInWhichTheyWereWritten_E46(t *testing.T) {
	const n = 60
	for _, way := range orderly {
		for era, meta := range map[string]string{
			"translated": "",
			"some tasks": "",
			"modern":     `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`,
		} {
			t.Run(era+" over "+way, func(t *testing.T) {
				opt, tasks := process(t, good, 0), era == "some tasks"
				opt.Bridge.Rules.HostTasks = tasks
				k := talkOver(t, way, opt)
				if meta == "" {
					k.open()
				}
				var calls []string
				for i := range n {
					task := ""
					if tasks && i%4 != 0 {
						task = `,"task":{}` // whose answer is a handle
					}
					calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"nth","arguments":{}%s%s}}`, i+1, meta, task))
				}
				k.say(calls...)
				for id, answer := range k.answered(n) {
					if !strings.Contains(answer, `"nth `+id+`"`) && !strings.Contains(answer, `"taskId"`) {
						t.Errorf("call %s: %s", id, answer)
					}
				}
			})
		}
	}
}

// ledger is a server that notes with which level each call came, and what is listened for.
type ledger struct {
	mu     sync.Mutex
	levels map[string]string // by the names of tools
	last   string            // what the newest listen is for
}

func newLedger() *ledger { return &ledger{levels: map[string]string{}} }

func (l *ledger) Do(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Method == mcp.MethodDiscover {
		return &upstream.Answer{Result: []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}}}`)}, nil
	}
	name, _ := rawjson.Text(rawjson.Get(call.Params, "name"))
	level, _ := rawjson.Text(rawjson.Get(rawjson.Get(call.Params, "_meta"), mcp.MetaLogLevel))
	l.mu.Lock()
	l.levels[name] = level
	l.mu.Unlock()
	return &upstream.Answer{Result: []byte(`{"resultType":"complete","content":[]}`)}, nil
}

func (l *ledger) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	filter := string(rawjson.Get(call.Params, "notifications"))
	l.mu.Lock()
	l.last = filter
	l.mu.Unlock()
	notify(jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":` + filter + `}`)})
	<-ctx.Done()
	return ctx.Err()
}

func (l *ledger) level(tool string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.levels[tool]
}

func (*ledger) Close() error { return nil }

func TestTheLevelHoldsForWhatComesBehindIt_B6(t *testing.T) {
	tool := func(id, name string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":{"name":"` + name + `"}}`
	}
	level := func(id, level string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"logging/setLevel","params":{"level":"` + level + `"}}`
	}
	for _, way := range orderly {
		t.Run(way, func(t *testing.T) {
			server := newLedger()
			k := talkOver(t, way, Options{Caller: server})
			k.open()
			for i := range 20 {
				first, last := fmt.Sprint("first", i), fmt.Sprint("last", i)
				k.say(level("a", "debug"), tool("b", first), level("c", "info"), level("d", "error"))
				k.answered(4)
				k.say(tool("e", last))
				k.answered(1)
				if got := server.level(first); got != "debug" {
					t.Errorf("a call behind setLevel(debug) went up with %q", got)
				}
				if got := server.level(last); got != "error" {
					t.Errorf("after setLevel(info), setLevel(error) a call went up with %q", got)
				}
			}
		})
	}
}

func TestSubscriptionsChangeInTheOrderOfTheirRequests_C14(t *testing.T) {
	const subscribe, unsubscribe = "subscribe", "unsubscribe"
	ask := func(id int, change, uri string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":{"uri":"%s"}}`, id, change, uri)
	}
	for _, way := range orderly {
		for name, changes := range map[string][]string{
			"left and taken up": {unsubscribe, subscribe},
			"taken up and left": {subscribe, unsubscribe},
			"to and fro":        {subscribe, unsubscribe, subscribe, unsubscribe, subscribe},
		} {
			t.Run(name+" over "+way, func(t *testing.T) {
				server := newLedger()
				k := talkOver(t, way, Options{Caller: server})
				k.open()
				for i := range 10 {
					uri := fmt.Sprint("x://", i)
					if changes[0] == unsubscribe {
						k.say(ask(0, subscribe, uri))
						k.answered(1)
					}
					var lines []string
					for n, change := range changes {
						lines = append(lines, ask(n+1, change, uri))
					}
					k.say(lines...)
					for _, answer := range k.answered(len(changes)) {
						if strings.Contains(answer, `"error"`) {
							t.Error(answer)
						}
					}
					// The listen of another change is for all that is subscribed to then.
					k.say(ask(100, subscribe, "y://"+fmt.Sprint(i)))
					k.answered(1)
					if last := changes[len(changes)-1]; server.newest(uri) != (last == subscribe) {
						t.Errorf("%s: after %q the server is listened to for it: %t", uri, changes, server.newest(uri))
					}
				}
			})
		}
	}
}

// newest reports whether the newest listen is for a resource.
func (l *ledger) newest(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.last, `"`+uri+`"`)
}
