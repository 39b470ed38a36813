// Package peers holds real peers for tests on the wire: a modern-only MRTR
// server and a legacy client, both on the official Go SDK, with a tool, prompt
// or resource for every case that a bridge must get right. Only tests import
// it. It knows nothing of the bridge.
package peers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/modernonly"
)

// ServerOptions vary a Server. The zero value is the usual one.
type ServerOptions struct {
	// Wrap sees the HTTP traffic outermost; nil leaves it alone.
	Wrap func(http.Handler) http.Handler
	// Step is called by tools at their steps, "work 1" for one, and lets a
	// test hold a tool there. nil lets tools run.
	Step func(ctx context.Context, step string)
	// JSON makes the server answer with JSON bodies instead of event streams.
	JSON bool
	// PageSize of lists; zero is the SDK's.
	PageSize int
}

// Server is a modern-only MCP server: stateless, no session, no handshake, and
// every question to the client is an input request. Any replica could serve
// any round: it keeps nothing between rounds but the request state.
type Server struct {
	MCP *mcp.Server
	URL string

	opts ServerOptions
	key  modernonly.Key

	mu        sync.Mutex
	effects   []string       // side effects, in order
	cancelled []string       // calls whose request was cancelled
	subs      map[string]int // live subscriptions by URI
	requests  []string       // methods of the requests received
	changed   chan struct{}
}

// NewServer starts a Server on a loopback port; it stops with the test.
func NewServer(tb testing.TB, opts ServerOptions) *Server {
	tb.Helper()
	s := New(opts)
	h := s.Handler()
	if opts.Wrap != nil {
		h = opts.Wrap(h)
	}
	srv := httptest.NewServer(h)
	tb.Cleanup(func() {
		srv.CloseClientConnections() // ends listens, which nothing else would
		srv.Close()
	})
	s.URL = srv.URL + "/mcp"
	return s
}

// New makes a Server that is not reachable yet, for tests that bring another
// transport.
func New(opts ServerOptions) *Server {
	s := &Server{opts: opts, key: modernonly.Key("a fixed key keeps transcripts stable"), subs: map[string]int{}}
	s.MCP = mcp.NewServer(&mcp.Implementation{Name: "mrtr-only", Title: "MRTR-only test server", Version: "1.0.0"}, s.options())
	s.addTools()
	s.addPrompts()
	s.addResources()
	return s
}

func (s *Server) options() *mcp.ServerOptions {
	return &mcp.ServerOptions{
		Instructions:              "Ask before you book.",
		PageSize:                  s.opts.PageSize,
		SupportedProtocolVersions: []string{modernonly.Version},
		Capabilities:              &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			s.note(func() { s.subs[r.Params.URI]++ })
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error {
			s.note(func() { s.subs[r.Params.URI]-- })
			return nil
		},
		CompletionHandler: complete,
	}
}

// Handler returns the server's HTTP handler, for tests that bring their own
// listener or several replicas.
func (s *Server) Handler() http.Handler {
	s.MCP.AddReceivingMiddleware(s.observe)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.MCP },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: s.opts.JSON, PropagateRequestCancellation: true})
	return modernonly.RejectLegacy(h)
}

// observe counts requests.
func (s *Server) observe(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		s.note(func() { s.requests = append(s.requests, method) })
		return next(ctx, method, req)
	}
}

// note changes the server's records and wakes who waits for them.
func (s *Server) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Effects returns the side effects so far; a call that was declined or
// cancelled must not add one.
func (s *Server) Effects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

// Cancelled returns the tools whose running request was cancelled.
func (s *Server) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cancelled)
}

// Requests returns how many requests of a method arrived.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.requests {
		if m == method {
			n++
		}
	}
	return n
}

// Subscriptions returns how many listens cover a resource now.
func (s *Server) Subscriptions(uri string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subs[uri]
}

// Wait blocks until ok holds, looking again after every change of the server's
// records, and fails the test when ctx ends first.
func (s *Server) Wait(tb testing.TB, ctx context.Context, what string, ok func() bool) {
	tb.Helper()
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tb.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}

// ChangeTools adds a tool, which the server announces as a list change.
func (s *Server) ChangeTools() {
	s.note(func() {})
	n := s.Requests("tools/call")
	addTool(s, fmt.Sprintf("added_%d", n), "Was added while the server ran.", anyArgs, func(context.Context, *call) (*mcp.CallToolResult, error) {
		return text("added"), nil
	})
}

// Touch announces that a resource changed. A client may only see it when it
// subscribed.
func (s *Server) Touch(ctx context.Context, uri string) error {
	return s.MCP.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
}

func (s *Server) step(ctx context.Context, step string) {
	if s.opts.Step != nil {
		s.opts.Step(ctx, step)
	}
}
