package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// changeable gives a modern server a tool that changes what others watch.
func changeable(s *peers.Server) *peers.Server {
	mcp.AddTool(s.MCP, &mcp.Tool{Name: "change"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, errors.Join(s.Touch(ctx, peers.NoteURI), s.Touch(ctx, peers.VaultURI))
	})
	return s
}

// modern is a modern client of the SDK that answers every question.
func modern(t *testing.T, url string) *peers.Client {
	t.Helper()
	return peers.NewClient(t, url, agreeableModern())
}

func agreeableModern() peers.ClientOptions {
	answers := map[string]any{"name": "Ada", "city": "OSL", "row": 12, "window": true, "days": 3, "ok": true, "tone": "warm", "code": "42"}
	return peers.ClientOptions{
		Version: "2026-07-28", Roots: []string{"file:///home"},
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return peers.Accept(answers) },
		Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sunny"}}, nil
		},
	}
}

// TestAModernClientSeesNoDifferenceToTheServerItself: in front of a command, with
// what the same server says over HTTP.
func TestAModernClientSeesNoDifferenceToTheServerItself_A11(t *testing.T) {
	for _, perSession := range []int{0, 2} {
		_, url := serve(t, process(t, sdkModern, perSession))
		through, straight := modern(t, url), modern(t, changeable(peers.NewServer(t, peers.ServerOptions{})).URL)
		if v := through.InitializeResult().ProtocolVersion; v != "2026-07-28" {
			t.Fatalf("it settled on %s", v)
		}
		sameAnswers(t, through, straight)
	}
}

// sameAnswers compares what two clients get.
func sameAnswers(t *testing.T, through, straight *peers.Client) {
	t.Helper()
	for name, ask := range map[string]func(*peers.Client) (any, error){
		"what it is":   func(c *peers.Client) (any, error) { return c.InitializeResult(), nil },
		"tools":        func(c *peers.Client) (any, error) { return c.ListTools(patience(t), nil) },
		"prompts":      func(c *peers.Client) (any, error) { return c.ListPrompts(patience(t), nil) },
		"resources":    func(c *peers.Client) (any, error) { return c.ListResources(patience(t), nil) },
		"echo":         func(c *peers.Client) (any, error) { return c.Call(patience(t), "echo", map[string]any{"ü": 1}) },
		"one question": func(c *peers.Client) (any, error) { return c.Call(patience(t), "greet", nil) },
		"request state": func(c *peers.Client) (any, error) {
			return c.Call(patience(t), "book", map[string]any{"passenger": "A"})
		},
		"no question":     func(c *peers.Client) (any, error) { return c.Call(patience(t), "busy", map[string]any{"rounds": 1}) },
		"three questions": func(c *peers.Client) (any, error) { return c.Call(patience(t), "trip", nil) },
		"a failed tool":   func(c *peers.Client) (any, error) { return c.Call(patience(t), "fail", nil) },
		"an error":        func(c *peers.Client) (any, error) { return c.Call(patience(t), "no such tool", nil) },
		"a prompt": func(c *peers.Client) (any, error) {
			return c.GetPrompt(patience(t), &mcp.GetPromptParams{Name: "letter", Arguments: map[string]string{"to": "Bob"}})
		},
		"a resource": func(c *peers.Client) (any, error) {
			return c.ReadResource(patience(t), &mcp.ReadResourceParams{URI: peers.VaultURI})
		},
	} {
		got, gotErr := ask(through)
		want, wantErr := ask(straight)
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) || said(gotErr) != said(wantErr) {
			t.Errorf("%s: through the bridge\n%s, %v\nand directly\n%s, %v", name, a, gotErr, b, wantErr)
		}
	}
}

// said is what the server said of a failure: the SDK adds words of its transports.
func said(err error) string {
	if refusal := (*sdkjsonrpc.Error)(nil); errors.As(err, &refusal) {
		return refusal.Error()
	}
	return fmt.Sprint(err)
}

// TestProgressOfModernClients: two of them use the same token on one process.
func TestProgressOfModernClientsReachesEachUnderItsOwnToken_B5(t *testing.T) {
	_, url := serve(t, process(t, sdkModern, 0))
	clients := []*peers.Client{modern(t, url), modern(t, url)}
	done := make(chan error, len(clients))
	for _, c := range clients {
		go func() {
			_, err := c.CallTool(patience(t), &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 3}, Meta: mcp.Meta{"progressToken": 1}})
			done <- err
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, c := range clients {
		if got := c.WaitFor(t, patience(t), "notifications/progress", 3); len(got) != 3 {
			t.Errorf("%d reports of progress: %s", len(got), got)
		}
	}
}

func TestModernSubscriptionsAndLegacySessionsShareOneProcess_E46(t *testing.T) {
	_, url := serve(t, process(t, sdkModern, 0))
	a, b := modern(t, url), modern(t, url)
	old := agreeable(t, url, peers.ClientOptions{Version: "2025-06-18"})
	// Of one resource the SDK knows one subscription per channel.
	watched := map[*peers.Client]string{a: peers.NoteURI, b: peers.VaultURI}
	for c, uri := range watched {
		if err := c.Subscribe(patience(t), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := old.Call(patience(t), "change", nil); err != nil {
		t.Fatal(err)
	}
	for c, uri := range watched {
		news := c.WaitFor(t, patience(t), "notifications/resources/updated", 1)
		if len(news) != 1 || !strings.Contains(string(news[0].Params), uri) {
			t.Errorf("who watches %s hears %s", uri, news)
		}
	}
}

func TestAModernClientThatGivesUpCancelsItsCall_E47(t *testing.T) {
	_, url := serve(t, process(t, sdkModern, 0))
	givesUp(t, modern(t, url))
}

const discover = `{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"VERSION","io.modelcontextprotocol/clientCapabilities":{}}}}`

// postModern sends a message with the headers of the modern era.
func postModern(t *testing.T, url, version, method, body string) (status int, text string) {
	t.Helper()
	req := request(t, http.MethodPost, url, "", strings.Replace(body, "VERSION", version, 1))
	req.Header.Set("Mcp-Protocol-Version", version)
	req.Header.Set("Mcp-Method", method)
	resp, err := wire.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all)
}

func TestErrorsOfACommandHaveTheStatusesOfHTTP(t *testing.T) {
	_, url := serve(t, process(t, sdkModern, 0))
	for _, tc := range []struct {
		name, version, method, body string
		status                      int
		part                        string
	}{
		{"discover", "2026-07-28", "server/discover", discover, 200, `"id":"d"`},
		{"another method in the header", "2026-07-28", "tools/list", discover, 400, `"code":-32020`},
		{"unknown version", "2099-01-01", "server/discover", discover, 400, `"code":-32022`},
		{"unknown method", "2026-07-28", "no/such", strings.Replace(discover, "server/discover", "no/such", 1), 404, `"code":-32601`},
		{"no version in the body", "2026-07-28", "tools/list", listTools, 400, `"code":-32602`},
	} {
		if status, text := postModern(t, url, tc.version, tc.method, tc.body); status != tc.status || !strings.Contains(text, tc.part) {
			t.Errorf("%s: %d %s", tc.name, status, text)
		}
	}
}

func TestModernRequestsToACommandAreRefusedAsALegacyServerWould_A11(t *testing.T) {
	off := process(t, sdkModern, 0)
	off.RefuseModern = true
	for name, opt := range map[string]Options{"configured": off, "a legacy server": process(t, sdkLegacy, 0)} {
		_, url := serve(t, opt)
		if status, text := postModern(t, url, "2026-07-28", "server/discover", discover); status != http.StatusBadRequest || !strings.Contains(text, "-32600") {
			t.Errorf("%s: %d %s", name, status, text)
		}
		c := modern(t, url) // it falls back
		if v := c.InitializeResult().ProtocolVersion; v == "2026-07-28" {
			t.Errorf("%s: it settled on %s", name, v)
		}
	}
}
