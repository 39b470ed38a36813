package peers

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ClientOptions vary a Client. Handlers that are nil leave the capability
// undeclared.
type ClientOptions struct {
	Version string // legacy version to ask for; empty means 2025-11-25
	Name    string // client name; empty means "legacy-client"

	Elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Sample func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	Roots  []string // root URIs; nil declares no roots
	// RootsCalled is called when the roots are asked for; nil is fine.
	RootsCalled func()
	URL         bool // declares URL elicitation too

	Progress func(*mcp.ProgressNotificationParams) // called on the session's reader

	// Standalone opens the GET stream, on which list changes and resource
	// updates arrive.
	Standalone bool
	HTTP       *http.Client
}

// Notification is one server notification as the client saw it.
type Notification struct {
	Method string
	Params json.RawMessage
}

// Client is a legacy client: it opens a session with initialize and answers
// server requests.
type Client struct {
	*mcp.ClientSession

	mu      sync.Mutex
	seen    []Notification
	changed chan struct{}
}

// NewClient connects a Client to a URL and closes it with the test.
func NewClient(tb testing.TB, url string, opts ClientOptions) *Client {
	tb.Helper()
	c, err := Dial(context.Background(), url, opts)
	if err != nil {
		tb.Fatalf("connect the legacy client: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Dial connects a Client to a URL. The error is the SDK's.
func Dial(ctx context.Context, url string, opts ClientOptions) (*Client, error) {
	return Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: opts.HTTP, DisableStandaloneSSE: !opts.Standalone,
	}, opts)
}

// Connect connects a Client over any transport of the SDK.
func Connect(ctx context.Context, transport mcp.Transport, opts ClientOptions) (*Client, error) {
	c := &Client{}
	version, name := opts.Version, opts.Name
	if version == "" {
		version = "2025-11-25"
	}
	if name == "" {
		name = "legacy-client"
	}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1.0.0"}, c.options(opts))
	for _, uri := range opts.Roots {
		client.AddRoots(&mcp.Root{URI: uri})
	}
	client.AddReceivingMiddleware(c.record, rootsCalled(opts.RootsCalled))
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	c.ClientSession = session
	return c, nil
}

func (c *Client) options(opts ClientOptions) *mcp.ClientOptions {
	caps := &mcp.ClientCapabilities{}
	if opts.Roots != nil {
		caps.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	if opts.URL {
		caps.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	o := &mcp.ClientOptions{Capabilities: caps}
	if opts.Elicit != nil {
		o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return opts.Elicit(ctx, r.Params)
		}
	}
	if opts.Sample != nil {
		o.CreateMessageHandler = func(ctx context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return opts.Sample(ctx, r.Params)
		}
	}
	if opts.Progress != nil {
		o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { opts.Progress(r.Params) }
	}
	return o
}

func rootsCalled(notify func()) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "roots/list" && notify != nil {
				notify()
			}
			return next(ctx, method, req)
		}
	}
}

// record keeps every notification in the order of arrival.
func (c *Client) record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if len(method) > 14 && method[:14] == "notifications/" {
			params, _ := json.Marshal(req.GetParams())
			c.mu.Lock()
			c.seen = append(c.seen, Notification{method, params})
			if c.changed != nil {
				close(c.changed)
				c.changed = nil
			}
			c.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}

// Notifications returns what arrived so far of a method; "" means of all.
func (c *Client) Notifications(method string) []Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.seen), func(n Notification) bool { return method != "" && n.Method != method })
}

// WaitFor blocks until n notifications of a method arrived, and fails the test
// when ctx ends first.
func (c *Client) WaitFor(tb testing.TB, ctx context.Context, method string, n int) []Notification {
	tb.Helper()
	for {
		c.mu.Lock()
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		if got := c.Notifications(method); len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tb.Fatalf("waiting for %d × %s, got %d: %v", n, method, len(c.Notifications(method)), ctx.Err())
		}
	}
}

// Call calls a tool.
func (c *Client) Call(ctx context.Context, tool string, args any) (*mcp.CallToolResult, error) {
	return c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
}

// Text joins the text blocks of a tool result.
func Text(res *mcp.CallToolResult) string {
	var s string
	for _, block := range res.Content {
		if t, ok := block.(*mcp.TextContent); ok {
			s += t.Text
		}
	}
	return s
}

// Accept answers an elicitation with content.
func Accept(content map[string]any) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}
