package mount

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(processMode); mode != "" {
		actAsProcess(mode)
		return
	}
	// A browser may outlive the bridge that opened it, and whoever waits for it.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mcpbridge/bridge/internal/browser.Open.func1"))
}

// seen is one request as the server got it, and its answer's session id.
type seen struct {
	method  string // of HTTP
	header  http.Header
	granted string
}

// sdkServer is a server of the Go SDK: a legacy one for these versions, or
// without any a dual-era one, which keeps sessions for its legacy clients. It has one tool that asks, reports progress and changes its lists.
type sdkServer struct {
	URL string
	mcp *mcp.Server

	mu   sync.Mutex
	seen []seen
}

func newSDKServer(t *testing.T, versions ...string) *sdkServer {
	t.Helper()
	s := &sdkServer{mcp: newLegacy(versions...)}
	get := func(*http.Request) *mcp.Server { return s.mcp }
	handler, modern := mcp.NewStreamableHTTPHandler(get, nil), mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := r.Header.Clone()
		if len(versions) == 0 && r.Header.Get("Mcp-Method") != "" {
			modern.ServeHTTP(w, r)
		} else {
			handler.ServeHTTP(w, r)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, seen{r.Method, head, w.Header().Get("Mcp-Session-Id")})
	}))
	t.Cleanup(func() { endSessions(server, s.mcp) })
	s.URL = server.URL
	return s
}

// endSessions ends a server, and what no client ended. The SDK's sessions end when their calls
// have, and so does the request that ends one: a call whose cancellation never came would keep
// all of them for ever. A session is ended only when none can be about to begin, which the SDK
// does not allow.
func endSessions(server *httptest.Server, of *mcp.Server) {
	endCalls(of)
	closed := make(chan struct{})
	go func() { defer close(closed); server.Close() }()
	for again := time.NewTicker(10 * time.Millisecond); ; {
		server.CloseClientConnections() // those that began meanwhile, too
		select {
		case <-closed:
			again.Stop()
			endAll(of)
			return
		case <-again.C:
		}
	}
}

// calls has for each server of newLegacy what ends its calls.
var calls sync.Map

func endCalls(of *mcp.Server) {
	if end, ok := calls.Load(of); ok {
		end.(context.CancelFunc)()
	}
}

func endAll(of *mcp.Server) {
	endCalls(of)
	for session := range of.Sessions() {
		_ = session.Close()
	}
}

// newLegacy is such a server without a way to it. Its tool "grow" adds a tool,
// "hang" runs until it is cancelled and "end" ends the process.
func newLegacy(versions ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: versions})
	over, end := context.WithCancel(context.Background())
	calls.Store(s, end)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, none struct{}) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(over, cancel)()
		return ask(ctx, req, none)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		s.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
		select {
		case <-ctx.Done():
		case <-over.Done():
		}
		return nil, nil, context.Canceled
	})
	mcp.AddTool(s, &mcp.Tool{Name: "end"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		os.Exit(1)
		return nil, nil, nil
	})
	return s
}

// ask reports progress, then asks the client over the call's own stream.
func ask(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	if token := req.Params.GetProgressToken(); token != nil {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1})
	}
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"})
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you said " + answer.Action}}}, nil, nil
}

func (s *sdkServer) requests(method string) (all []seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.seen {
		if method == "" || x.method == method {
			all = append(all, x)
		}
	}
	return all
}

// serve puts a mount on a loopback port.
func serve(t *testing.T, opt Options) (*Mount, string) {
	t.Helper()
	opt.Bridge.Log = zerolog.Nop()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(m)
	t.Cleanup(func() {
		m.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return m, server.URL
}

func over(url string) Options {
	return Options{Upstream: streamable.Options{URL: url, StandardTransport: testmode.StandardHTTP()}}
}

// agreeable is a client that accepts every question.
func agreeable(t *testing.T, url string, opt peers.ClientOptions) *peers.Client {
	t.Helper()
	opt.Elicit = func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return peers.Accept(nil) }
	return peers.NewClient(t, url, opt)
}

// patience bounds every wait; reaching it is a failure.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// newOldServer is a legacy server of the SDK that is reached only over HTTP+SSE. It
// returns its URL.
func newOldServer(t *testing.T) string {
	t.Helper()
	s := newLegacy("2025-06-18", "2025-03-26", "2024-11-05")
	server := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { endSessions(server, s) })
	return server.URL + "/sse"
}

// Calls that nobody cancelled end with their server, whether anybody ends their session or not.
func TestAServersEndDoesNotWaitForItsCalls(t *testing.T) {
	for _, ends := range []bool{false, true} {
		server := newSDKServer(t, "2025-06-18")
		ctx, leave := context.WithCancel(t.Context())
		url := server.URL
		session, _ := initialize(t, url, "2025-06-18", `{}`)
		req := request(t, http.MethodPost, url, session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang","arguments":{},"_meta":{"progressToken":"p"}}}`)
		resp, err := wire.Do(req.WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = resp.Body.Read(make([]byte, 1)) // it has begun
		leave()
		_ = resp.Body.Close()
		if ends {
			ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond) // it is answered when the call has ended
			if resp, err := wire.Do(request(t, http.MethodDelete, url, session, "").WithContext(ctx)); err == nil {
				_ = resp.Body.Close()
			}
			leave()
		}
	}
}
