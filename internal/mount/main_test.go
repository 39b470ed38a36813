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

// endSessions ends what no client ended, and then the server: its streams last as long as
// their sessions, and one that began while connections were closed would keep it for ever.
func endSessions(server *httptest.Server, of *mcp.Server) {
	endAll(of)
	server.CloseClientConnections()
	server.Close()
	endAll(of) // those that began meanwhile
}

func endAll(of *mcp.Server) {
	for session := range of.Sessions() {
		_ = session.Close()
	}
}

// newLegacy is such a server without a way to it. Its tool "grow" adds a tool,
// "hang" runs until it is cancelled and "end" ends the process.
func newLegacy(versions ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: versions})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, ask)
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		s.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		return nil, nil, ctx.Err()
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
