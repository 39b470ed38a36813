package mount

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/legacy"
)

// modernServers are modern servers of either kind.
var modernServers = map[string]func(t *testing.T) Options{
	"over HTTP": func(t *testing.T) Options {
		return over(changeable(peers.NewServer(t, peers.ServerOptions{})).URL)
	},
	"a command": func(t *testing.T) Options { return process(t, sdkModern, 0) },
}

// TestModernClientsOnConnections is the matrix: each connection, each kind of server, and
// what the same server says directly.
func TestModernClientsOnConnectionsSeeNoDifferenceToTheServerItself_A11(t *testing.T) {
	straight := modern(t, changeable(peers.NewServer(t, peers.ServerOptions{})).URL)
	for kind, start := range modernServers {
		for _, way := range []string{"stdio", "WebSocket"} {
			t.Run(way+" to "+kind, func(t *testing.T) {
				m, base := mounted(t, start(t))
				c, err := peers.Connect(patience(t), ways[way](t, m, base), agreeableModern())
				if err != nil {
					t.Fatal(err)
				}
				if v := c.InitializeResult().ProtocolVersion; v != "2026-07-28" {
					t.Fatalf("it settled on %s", v)
				}
				sameAnswers(t, c, straight)
				onConnection(t, c)
				_ = c.Close()
			})
		}
	}
}

// onConnection is what differs from transport to transport.
func onConnection(t *testing.T, c *peers.Client) {
	t.Helper()
	if _, err := c.CallTool(patience(t), &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 3}, Meta: mcp.Meta{"progressToken": 1}}); err != nil {
		t.Error(err)
	}
	if got := c.WaitFor(t, patience(t), "notifications/progress", 3); len(got) != 3 || !strings.Contains(string(got[0].Params), `"progressToken":1`) {
		t.Errorf("%d reports of progress: %s", len(got), got)
	}
	givesUp(t, c)
}

// givesUp has a client cancel a call, after which its next one is answered.
func givesUp(t *testing.T, c *peers.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(patience(t))
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "hang", Meta: mcp.Meta{"progressToken": "p"}})
		done <- err
	}()
	cancel()
	if err := <-done; err == nil {
		t.Error("the cancelled call succeeded")
	}
	if _, err := c.Call(patience(t), "echo", nil); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// dialogue is a client over stdio that speaks in lines.
type dialogue struct {
	t     *testing.T
	write io.Writer
	lines *bufio.Scanner
}

func speak(t *testing.T, opt Options) *dialogue {
	m, _ := mounted(t, opt)
	in, write := io.Pipe()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- legacy.ServeStdio(t.Context(), in, out, legacy.Options{}, m.Backend); _ = out.Close() }()
	t.Cleanup(func() { _ = write.Close(); _, _ = io.Copy(io.Discard, read); <-done })
	return &dialogue{t, write, bufio.NewScanner(read)}
}

// ask sends a line, for {V} what makes it modern, and returns the next one that comes.
func (d *dialogue) ask(line string) string {
	d.t.Helper()
	d.tell(line)
	return d.next()
}

func (d *dialogue) tell(line string) {
	_, _ = io.WriteString(d.write, strings.ReplaceAll(line, "{V}",
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)+"\n")
}

func (d *dialogue) next() string {
	d.t.Helper()
	if !d.lines.Scan() {
		d.t.Fatal("no answer")
	}
	return d.lines.Text()
}

// A server that has shown to be modern answers one call with a bare 404: nobody is to initialize for that.
func TestABare404OfAModernServerIsToldAsItIs_A11(t *testing.T) {
	url := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "server/discover") {
			http.NotFound(w, r)
			return
		}
		var msg struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(body, &msg)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(msg.ID)+
			`,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`)
	})
	m, base := mounted(t, over(url))
	if v := m.Judge(patience(t)); !v.Usable() {
		t.Fatalf("%+v", v)
	}
	pipe := ways["stdio"](t, m, base).(*mcp.IOTransport)
	_, _ = io.WriteString(pipe.Writer, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n")
	if got, err := bufio.NewReader(pipe.Reader).ReadString('\n'); err != nil || !strings.Contains(got, "answered HTTP 404") {
		t.Errorf("%v: %s", err, got)
	}
}

// versioning, "Backward Compatibility": a request that carries its version is served so;
// initialize selects what else is said on the connection.
func TestErasOnOneConnectionAreToldApartMessageByMessage_A11(t *testing.T) {
	for kind, start := range modernServers {
		d := speak(t, start(t))
		modernAsk := `{"jsonrpc":"2.0","id":"i","method":"tools/list","params":{{V}}}`
		legacyAsk := `{"jsonrpc":"2.0","id":"i","method":"tools/list","params":{}}`
		if got := d.ask(modernAsk); !strings.Contains(got, `"resultType"`) || !strings.Contains(got, `"id":"i"`) {
			t.Errorf("%s: before a session: %.200s", kind, got)
		}
		if got := d.ask(legacyAsk); !strings.Contains(got, "initialize first") {
			t.Errorf("%s: a legacy request without a session: %.200s", kind, got)
		}
		if got := d.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`); !strings.Contains(got, "2025-06-18") {
			t.Errorf("%s: initialize: %.200s", kind, got)
		}
		if got := d.ask(modernAsk); !strings.Contains(got, `"resultType"`) {
			t.Errorf("%s: a modern request in a session: %.200s", kind, got)
		}
		if got := d.ask(legacyAsk); strings.Contains(got, `"resultType"`) || !strings.Contains(got, `"tools"`) {
			t.Errorf("%s: a legacy request: %.200s", kind, got)
		}
		if got := d.ask(`{"jsonrpc":"2.0","id":2,"method":"server/discover"}`); !strings.Contains(got, "-32601") {
			t.Errorf("%s: what declares nothing belongs to the session: %.200s", kind, got)
		}
	}
}

// The spec's stdio page: a cancelled request gets no more messages, and its id is free.
func TestACancellationFindsTheRequestOfItsEra_E47(t *testing.T) {
	for kind, start := range modernServers {
		d := speak(t, start(t))
		d.tell(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hang","arguments":{},{V}}}`)
		d.tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		if got := d.ask(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":"b"},{V}}}`); !strings.Contains(got, `"id":7,"result"`) {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func TestASubscriptionOnAConnectionHasTheClientsNameAndEndsWithTheConnection(t *testing.T) {
	for kind, start := range modernServers {
		m, err := New(start(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		in, write := io.Pipe()
		read, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- legacy.ServeStdio(ctx, in, out, legacy.Options{}, m.Backend); _ = out.Close() }()
		d := &dialogue{t, write, bufio.NewScanner(read)}
		if got := d.ask(`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + peers.NoteURI + `"]},{V}}}`); !strings.Contains(got, "acknowledged") || !strings.Contains(got, `subscriptionId":"s"`) {
			t.Errorf("%s: listen begins with %s", kind, got)
		}
		d.tell(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"change","arguments":{},{V}}}`)
		both := d.next() + d.next()
		if !strings.Contains(both, "resources/updated") || !strings.Contains(both, `subscriptionId":"s"`) || !strings.Contains(both, `"id":"c","result"`) {
			t.Errorf("%s: a change brings %s", kind, both)
		}
		stop()
		if got := d.next(); !strings.Contains(got, `"id":"s","result"`) {
			t.Errorf("%s: listen ends with %s", kind, got)
		}
		_ = write.Close()
		<-done
		m.Close()
	}
}

func TestModernRequestsOnConnectionsAreRefusedAsALegacyServerWould_A11(t *testing.T) {
	off := process(t, sdkModern, 0)
	off.RefuseModern = true
	for name, opt := range map[string]Options{
		"configured": off, "a legacy command": process(t, sdkLegacy, 0), "an old server": over(newOldServer(t)),
	} {
		d := speak(t, opt)
		var got struct{ Error struct{ Code int } }
		_ = json.Unmarshal([]byte(d.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{V}}}`)), &got)
		if got.Error.Code == 0 || got.Error.Code <= -32020 && got.Error.Code > -32030 {
			t.Errorf("%s: discover gets %d", name, got.Error.Code)
		}
		if answer := d.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`); !strings.Contains(answer, `"result"`) {
			t.Errorf("%s: and initialize %s", name, answer)
		}
	}
}

// timeouts.round and timeouts.flow hold here, too.
func TestAModernCallOnAConnectionThatIsNeverAnsweredFails(t *testing.T) {
	hangs := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for kind, opt := range map[string]Options{"over HTTP": over(hangs), "a command": process(t, silent, 0)} {
		opt.Bridge.Limits.Flow.Round = time.Millisecond
		opt.Probe.Timeout = time.Millisecond
		d := speak(t, opt)
		if got := d.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{V}}}`); !strings.Contains(got, `"id":1,"error"`) {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
