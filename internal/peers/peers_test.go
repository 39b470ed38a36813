package peers

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modern connects the SDK's own modern client, which does MRTR itself. What it
// can do with the server, a legacy client must be able to do through a bridge.
func modern(t *testing.T, s *Server, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	opts.Capabilities = &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}}
	client := mcp.NewClient(&mcp.Implementation{Name: "modern", Version: "1"}, opts)
	client.AddRoots(&mcp.Root{URI: "file:///home"})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func answering() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return Accept(map[string]any{
				"What is your name?":        map[string]any{"name": "Ada"},
				"Where do you want to fly?": map[string]any{"city": "OSL"},
				"Which seat to OSL?":        map[string]any{"row": 12, "window": true},
				"How many days?":            map[string]any{"days": 3},
				"Go on?":                    map[string]any{"ok": true},
				"Which tone?":               map[string]any{"tone": "warm"},
				"What is the code?":         map[string]any{"code": "42"},
			}[r.Params.Message].(map[string]any))
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sunny"}}, nil
		},
	}
}

func TestEveryToolWorksWithAModernClient(t *testing.T) {
	s := NewServer(t, ServerOptions{})
	c := modern(t, s, answering())
	for _, tc := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"echo", map[string]any{"n": 1}, `{"n":1}`},
		{"greet", nil, "Hello, Ada!"},
		{"book", map[string]any{"passenger": "Ada"}, "Booked Ada to OSL, row 12, window true."},
		{"busy", map[string]any{"rounds": 1}, "done after 1 state-only rounds"},
		{"summarize", nil, "summary: sunny"},
		{"workspace", nil, "roots: file:///home"},
		{"trip", nil, "sunny; 3 days (accept); files in file:///home"},
		{"work", map[string]any{"ask": true}, "worked 2 steps"},
		{"fail", nil, "the tool failed"},
		{"chatter", nil, "said it all"},
		{"weather", nil, `{"celsius":21.50}`},
		{"numbers", nil, "two numbers"},
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool, Arguments: tc.args})
		if err != nil {
			t.Errorf("%s: %v", tc.tool, err)
			continue
		}
		if got := Text(res); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.tool, got, tc.want)
		}
	}
}

func TestPromptsAndResourcesAsk(t *testing.T) {
	s := NewServer(t, ServerOptions{})
	c := modern(t, s, answering())
	p, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "letter", Arguments: map[string]string{"to": "Bob"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Messages[0].Content.(*mcp.TextContent).Text; got != "Write a warm letter to Bob (letter-1)." {
		t.Errorf("prompt: %q", got)
	}
	r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: VaultURI})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Contents[0].Text; got != "accept with 42, vault-1" {
		t.Errorf("resource: %q", got)
	}
}

func TestACancelledCallIsSeenByTheServer(t *testing.T) {
	s := NewServer(t, ServerOptions{})
	c := modern(t, s, answering())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
		done <- err
	}()
	s.Wait(t, t.Context(), "the call", func() bool { return s.Requests("hang started") == 1 })
	cancel()
	if err := <-done; err == nil {
		t.Error("the cancelled call succeeded")
	}
	s.Wait(t, t.Context(), "the cancellation", func() bool { return len(s.Cancelled()) == 1 })
}

func TestALegacyClientIsRefused(t *testing.T) {
	s := NewServer(t, ServerOptions{})
	c, err := Dial(t.Context(), s.URL, ClientOptions{})
	if err == nil {
		_ = c.Close()
		t.Fatal("a modern-only server accepted a legacy client")
	}
	if !strings.Contains(err.Error(), "2026-07-28 only") {
		t.Errorf("refused with %v", err)
	}
}

func TestUpdatesReachOnlySubscribers(t *testing.T) {
	s := NewServer(t, ServerOptions{})
	opts := answering()
	updates, lists := make(chan string, 9), make(chan bool, 9)
	opts.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI }
	opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { lists <- true }
	c := modern(t, s, opts)
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: NoteURI}); err != nil {
		t.Fatal(err)
	}
	s.Wait(t, t.Context(), "the subscription", func() bool { return s.Subscriptions(NoteURI) == 1 })
	if err := s.Touch(t.Context(), VaultURI); err != nil {
		t.Fatal(err)
	}
	if err := s.Touch(t.Context(), NoteURI); err != nil {
		t.Fatal(err)
	}
	if got := <-updates; got != NoteURI {
		t.Errorf("update of %s arrived unasked", got)
	}
	s.ChangeTools()
	<-lists
}
