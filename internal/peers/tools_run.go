package peers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// work reports steps of progress; with "ask" it asks after half of them and
// goes on in the next round, whose progress starts again at 1.
func work(ctx context.Context, c *call) (*mcp.CallToolResult, error) {
	steps := c.number("steps", 2)
	if err := c.progress(ctx, steps); err != nil {
		return nil, err
	}
	if asks, _ := c.args["ask"].(bool); asks {
		if _, answered := c.elicited("go_on"); !answered {
			return c.ask(nil, mcp.InputRequestMap{"go_on": form("Go on?", `{"type":"object","properties":{"ok":{"type":"boolean"}}}`)})
		}
	}
	c.effect("work %d", steps)
	return text("worked %d steps", steps), nil
}

func (c *call) progress(ctx context.Context, steps int) error {
	token := c.Params.GetProgressToken()
	for i := range steps {
		if token != nil {
			_ = c.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(i + 1), Total: float64(steps), Message: fmt.Sprintf("step %d", i+1)})
		}
		c.server.step(ctx, fmt.Sprintf("%s %d", c.Params.Name, i+1))
		if ctx.Err() != nil {
			return c.wasCancelled(ctx)
		}
	}
	return nil
}

func hang(ctx context.Context, c *call) (*mcp.CallToolResult, error) {
	c.server.note(func() { c.server.requests = append(c.server.requests, "hang started") })
	<-ctx.Done()
	return nil, c.wasCancelled(ctx)
}

func fail(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	if code := c.number("code", 0); code != 0 {
		return nil, &jsonrpc.Error{Code: int64(code), Message: "as you asked", Data: json.RawMessage(`{"hint":"<none>"}`)}
	}
	res := text("the tool failed")
	res.IsError = true
	return res, nil
}

func chatter(ctx context.Context, c *call) (*mcp.CallToolResult, error) {
	for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "error"} {
		_ = c.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "chatter", Data: "a message"})
	}
	return text("said it all"), nil
}

func weatherOutput(t *mcp.Tool) {
	t.OutputSchema = json.RawMessage(`{"type":"object","properties":{"celsius":{"type":"number"}},"required":["celsius"]}`)
}

func weather(context.Context, *call) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: `{"celsius":21.50}`}},
		StructuredContent: json.RawMessage(`{"celsius":21.50}`),
	}, nil
}

func numbersOutput(t *mcp.Tool) {
	t.OutputSchema = json.RawMessage(`{"type":"array","items":{"type":"integer"}}`)
}

func numbers(context.Context, *call) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: "two numbers"}},
		StructuredContent: json.RawMessage(`[9007199254740993,2]`),
	}, nil
}
