package peers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// call is one round of a tools/call as a tool of this package sees it.
type call struct {
	*mcp.CallToolRequest
	server *Server
	args   map[string]any
}

var anyArgs = json.RawMessage(`{"type":"object"}`)

func addTool(s *Server, name, description string, schema json.RawMessage, run func(context.Context, *call) (*mcp.CallToolResult, error), change ...func(*mcp.Tool)) {
	tool := &mcp.Tool{Name: name, Description: description, InputSchema: schema}
	for _, c := range change {
		c(tool)
	}
	s.MCP.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := &call{CallToolRequest: req, server: s, args: map[string]any{}}
		if len(req.Params.Arguments) > 0 {
			if err := json.Unmarshal(req.Params.Arguments, &c.args); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "arguments are no object"}
			}
		}
		return run(ctx, c)
	})
}

func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// number returns a numeric argument, or fallback when it is absent.
func (c *call) number(name string, fallback int) int {
	if f, ok := c.args[name].(float64); ok {
		return int(f)
	}
	return fallback
}

// effect records that the tool did what it is for.
func (c *call) effect(format string, args ...any) {
	c.server.note(func() { c.server.effects = append(c.server.effects, fmt.Sprintf(format, args...)) })
}

// wasCancelled records that the request was cancelled and returns the error.
func (c *call) wasCancelled(ctx context.Context) error {
	c.server.note(func() { c.server.cancelled = append(c.server.cancelled, c.Params.Name) })
	return ctx.Err()
}

// subject binds request state to the call: tool and arguments.
func (c *call) subject() string {
	sum := sha256.Sum256(c.Params.Arguments)
	return fmt.Sprintf("%s %x", c.Params.Name, sum[:8])
}

// ask ends the round with input requests and the state that the next round
// needs. A nil state sends none.
func (c *call) ask(state any, requests mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	if err := c.require(requests); err != nil {
		return nil, err
	}
	res := &mcp.CallToolResult{InputRequests: requests}
	if state != nil {
		sealed, err := c.server.key.Seal(c.subject(), state)
		if err != nil {
			return nil, err
		}
		res.RequestState = sealed
	}
	return res, nil
}

// state opens the request state into v; false when this is the first round. A
// forged state is refused as the specification asks: -32602.
func (c *call) state(v any) (bool, error) {
	if c.Params.RequestState == "" {
		return false, nil
	}
	if err := c.server.key.Open(c.subject(), c.Params.RequestState, v); err != nil {
		return false, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return true, nil
}

// elicited returns the answer to an elicitation of this round.
func (c *call) elicited(key string) (*mcp.ElicitResult, bool) {
	r, ok := c.Params.InputResponses[key].(*mcp.ElicitResult)
	return r, ok
}

// require refuses, with -32021, to ask what the client did not declare.
func (c *call) require(requests mcp.InputRequestMap) error {
	declared := &mcp.ClientCapabilities{}
	if p := c.Session.InitializeParams(); p != nil && p.Capabilities != nil {
		declared = p.Capabilities
	}
	missing := map[string]any{}
	for _, r := range requests {
		switch r := r.(type) {
		case *mcp.ElicitParams:
			if e := declared.Elicitation; e == nil || (r.Mode == "url" && e.URL == nil) {
				missing["elicitation"] = struct{}{}
			}
		case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
			if declared.Sampling == nil {
				missing["sampling"] = struct{}{}
			}
		case *mcp.ListRootsParams:
			if declared.RootsV2 == nil {
				missing["roots"] = struct{}{}
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	data, _ := json.Marshal(map[string]any{"requiredCapabilities": missing})
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client cannot be asked for this", Data: data}
}

func form(message, schema string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	cities := []string{"Lisbon", "Oslo", "Porto", "Osaka"}
	matches := slices.DeleteFunc(cities, func(city string) bool {
		v := req.Params.Argument.Value
		return len(v) > len(city) || city[:len(v)] != v
	})
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: matches, Total: len(matches)}}, nil
}
