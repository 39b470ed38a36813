package mount

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
)

// ways are the client transports, each as one of the SDK's to a mount.
var ways = map[string]func(t *testing.T, m *Mount, base string) mcp.Transport{
	"Streamable HTTP": func(_ *testing.T, _ *Mount, base string) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: base + "/mcp"}
	},
	"HTTP+SSE": func(_ *testing.T, _ *Mount, base string) mcp.Transport {
		return &mcp.SSEClientTransport{Endpoint: base + "/sse"}
	},
	"WebSocket": overWebSocket,
	"stdio":     overPipes,
}

// overPipes serves a mount over pipes, as the command does.
func overPipes(t *testing.T, m *Mount, _ string) mcp.Transport {
	t.Helper()
	toBridge, fromClient := io.Pipe()
	toClient, fromBridge := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = legacy.ServeStdio(t.Context(), toBridge, fromBridge, legacy.Options{}, m.Backend)
		_ = fromBridge.Close()
	}()
	t.Cleanup(func() { _ = fromClient.Close(); _ = toClient.Close(); <-served })
	return &mcp.IOTransport{Reader: toClient, Writer: fromClient}
}

// overWebSocket carries lines in frames.
func overWebSocket(t *testing.T, _ *Mount, base string) mcp.Transport {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(base, "http")+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	toClient, fromBridge := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			_, frame, err := conn.ReadMessage()
			if err != nil {
				_ = fromBridge.Close()
				return
			}
			if _, err := fromBridge.Write(append(frame, '\n')); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); _ = toClient.Close(); <-read })
	return &mcp.IOTransport{Reader: toClient, Writer: &frames{conn}}
}

type frames struct{ conn *websocket.Conn }

func (f *frames) Write(line []byte) (int, error) {
	return len(line), f.conn.WriteMessage(websocket.TextMessage, line)
}

func (f *frames) Close() error { return f.conn.Close() }

// mounted puts a mount on a loopback port, with every transport that it has.
func mounted(t *testing.T, opt Options) (*Mount, string) {
	t.Helper()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", m)
	mux.Handle("/sse", m.SSE("/messages"))
	mux.Handle("/messages", m.Messages())
	server := httptest.NewServer(mux)
	t.Cleanup(func() { m.Close(); server.CloseClientConnections(); server.Close() })
	return m, server.URL
}

// legacyServers are servers of the SDK that speak older revisions only.
var legacyServers = map[string]func(t *testing.T) (Options, *sdkServer){
	"over HTTP": func(t *testing.T) (Options, *sdkServer) {
		server := newSDKServer(t, "2025-06-18", "2025-03-26", "2024-11-05")
		return over(server.URL), server
	},
	"over HTTP+SSE": func(t *testing.T) (Options, *sdkServer) { return over(newOldServer(t)), nil },
	"a command":     func(t *testing.T) (Options, *sdkServer) { return process(t, sdkLegacy, 0), nil },
	"a command per session": func(t *testing.T) (Options, *sdkServer) {
		return process(t, sdkLegacy, 4), nil
	},
}

// TestEveryClientReachesALegacyServerOfAnyKind is the matrix: each way in, each
// kind of server, everything that a conversation consists of.
func TestEveryClientReachesALegacyServerOfAnyKind_A16(t *testing.T) {
	reference := agreeable(t, newSDKServer(t, "2025-06-18", "2025-03-26", "2024-11-05").URL, peers.ClientOptions{Version: "2025-06-18"})
	for kind, start := range legacyServers {
		for way, dial := range ways {
			t.Run(way+" to "+kind, func(t *testing.T) {
				opt, server := start(t)
				m, base := mounted(t, opt)
				c, err := peers.Connect(patience(t), dial(t, m, base), peers.ClientOptions{
					Version: "2025-06-18",
					Elicit:  func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return peers.Accept(nil) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := c.InitializeResult(), reference.InitializeResult(); !reflect.DeepEqual(got, want) {
					t.Errorf("initialized with %+v, directly with %+v", got, want)
				}
				converse(t, c)
				if err := c.Close(); err != nil && way != "WebSocket" {
					t.Error(err)
				}
				if way != "stdio" { // it has no session to count
					busy(t, m, 0)
				}
				m.Close() // returns when the session or process has ended
				if server != nil && way != "Streamable HTTP" {
					if ends := server.requests(http.MethodDelete); len(ends) != 1 || ends[0].header.Get("Mcp-Session-Id") == "" {
						t.Errorf("the server saw the end of %d sessions", len(ends))
					}
				}
			})
		}
	}
}

func converse(t *testing.T, c *peers.Client) {
	t.Helper()
	res, err := c.CallTool(patience(t), &mcp.CallToolParams{Name: "ask", Meta: mcp.Meta{"progressToken": "p"}})
	if err != nil || peers.Text(res) != "you said accept" {
		t.Errorf("%+v, %v", res, err)
	}
	c.WaitFor(t, patience(t), "notifications/progress", 1)
	if _, err := c.Call(patience(t), "no such tool", nil); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool: %v", err)
	}
	ctx, cancel := context.WithCancel(patience(t))
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "hang", Meta: mcp.Meta{"progressToken": "q"}})
		done <- err
	}()
	c.WaitFor(t, patience(t), "notifications/progress", 2)
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled call succeeded")
	}
	if _, err := c.Call(patience(t), "grow", nil); err != nil {
		t.Error(err)
	}
	c.WaitFor(t, patience(t), "notifications/tools/list_changed", 1)
}

// TestALegacyProcessThatEnds: its calls get an error, and the client learns that
// its session is over.
func TestALegacyProcessThatEndsTakesItsSessionAlong(t *testing.T) {
	for way, dial := range ways {
		m, base := mounted(t, process(t, sdkLegacy, 0))
		c, err := peers.Connect(patience(t), dial(t, m, base), peers.ClientOptions{Version: "2025-06-18"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Call(patience(t), "end", nil)
		if err == nil || !strings.Contains(err.Error(), "process has ended") && !errors.Is(err, io.EOF) { // the SDK may see the end before the message
			t.Errorf("%s: the call ends with %v", way, err)
		}
		if _, err := c.Call(patience(t), "grow", nil); err == nil {
			t.Errorf("%s: the session goes on", way)
		}
		_ = c.Close()
	}
}

func TestProcessesOfLegacyClientsAreCapped_Q4(t *testing.T) {
	opt := process(t, sdkLegacy, 0)
	opt.Command.Children = 1
	_, url := serve(t, opt)
	a := session(t, url)
	if id, body := initialize(t, url, "2025-06-18", `{}`); id != "" || !strings.Contains(body, "limits.children") {
		t.Errorf("a session above the cap gets %q %s", id, body)
	}
	if status, body := post(t, url, a, listTools); status != http.StatusOK || !strings.Contains(body, `"ask"`) {
		t.Errorf("the first session answers %d %s", status, body)
	}
	if status, _ := send(t, http.MethodDelete, url, a, ""); status != http.StatusNoContent {
		t.Errorf("DELETE answers %d", status)
	}
	for deadline := patience(t); ; { // the place is free when the process has really ended
		if id, _ := initialize(t, url, "2025-06-18", `{}`); id != "" {
			return
		}
		if deadline.Err() != nil {
			t.Fatal("the place is not given back")
		}
	}
}

func TestLegacyCommandsAreRefusedWhereNobodyMayBeRelayed_A24(t *testing.T) {
	opt := process(t, sdkLegacy, 0)
	opt.Relay = negotiate.RelayNever
	m, base := mounted(t, opt)
	for way, dial := range ways {
		_, err := peers.Connect(patience(t), dial(t, m, base), peers.ClientOptions{Version: "2025-06-18"})
		if err == nil || !strings.Contains(err.Error(), "legacy server: it offers") {
			t.Errorf("%s: %v", way, err)
		}
	}
}

func TestDualEraCommandsAreTranslatedOrRelayed_A16(t *testing.T) {
	for policy, relayed := range map[negotiate.RelayPolicy]bool{negotiate.RelayAuto: false, negotiate.RelayAlways: true} {
		opt := process(t, sdkDual, 0)
		opt.Relay, opt.Command.Children = policy, 1
		_, url := serve(t, opt)
		a := session(t, url)
		if status, body := post(t, url, a, listTools); status != http.StatusOK || !strings.Contains(body, `"ask"`) {
			t.Errorf("policy %v: %d %s", policy, status, body)
		}
		id, _ := initialize(t, url, "2025-06-18", `{}`)
		if got := id == ""; got != relayed { // of one process for each session there is only one
			t.Errorf("policy %v: relayed %v", policy, got)
		}
		if c := modern(t, url); c.InitializeResult().ProtocolVersion != "2026-07-28" {
			t.Errorf("policy %v: a modern client settled on %s", policy, c.InitializeResult().ProtocolVersion)
		}
	}
}

// TestMessagesPassUnchanged: what the server writes comes as it is, what the
// client writes has the same id, method and params.
func TestMessagesPassUnchanged_A16(t *testing.T) {
	m, _ := mounted(t, process(t, parrot, 0))
	in, write := io.Pipe()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- legacy.ServeStdio(t.Context(), in, out, legacy.Options{}, m.Backend) }()
	lines := bufio.NewScanner(read)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":"\u0069","method":"initialize","params":{"protocolVersion":"2025-06-18","x": [1,  2]}}`,
		`{"jsonrpc":"2.0","id":12345678901234567890,"method":"no/such","params":{"a":"\ud800","n":1.50}}`,
		`{"jsonrpc":"2.0","id":0,"method":"ping"}`,
	} {
		_, _ = io.WriteString(write, message+"\n")
		if !lines.Scan() {
			t.Fatal("no answer")
		}
		got := lines.Text()
		if quoted, _ := json.Marshal(message); !strings.Contains(got, string(quoted)) {
			t.Errorf("of %s the server got %s", message, got)
		}
		if !strings.Contains(message, "initialize") && !strings.HasSuffix(got, ` , "vendor": [1,  2] }`) {
			t.Errorf("its answer came as %s", got)
		}
	}
	_ = write.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
