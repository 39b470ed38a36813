package peers

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Resources of the server. The vault asks before it opens; its content is what
// the user typed.
const (
	NoteURI  = "file:///note.txt"
	VaultURI = "file:///vault.txt"
)

func (s *Server) addPrompts() {
	s.MCP.AddPrompt(&mcp.Prompt{Name: "plain", Description: "Says hello."}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return prompt("Hello."), nil
	})
	s.MCP.AddPrompt(&mcp.Prompt{Name: "letter", Description: "Asks for a tone.", Arguments: []*mcp.PromptArgument{{Name: "to"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			answer, ok := req.Params.InputResponses["tone"].(*mcp.ElicitResult)
			if !ok {
				return &mcp.GetPromptResult{RequestState: "letter-1", InputRequests: mcp.InputRequestMap{"tone": form("Which tone?",
					`{"type":"object","properties":{"tone":{"type":"string","enum":["formal","warm"]}},"required":["tone"]}`)}}, nil
			}
			return prompt(fmt.Sprintf("Write a %v letter to %s (%s).", answer.Content["tone"], req.Params.Arguments["to"], req.Params.RequestState)), nil
		})
}

func prompt(line string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: line}}}}
}

func (s *Server) addResources() {
	s.MCP.AddResource(&mcp.Resource{Name: "note", URI: NoteURI, MIMEType: "text/plain"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return contents(NoteURI, "a note"), nil
	})
	s.MCP.AddResource(&mcp.Resource{Name: "vault", URI: VaultURI, MIMEType: "text/plain"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		answer, ok := req.Params.InputResponses["code"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.ReadResourceResult{RequestState: "vault-1", InputRequests: mcp.InputRequestMap{"code": form("What is the code?",
				`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`)}}, nil
		}
		return contents(VaultURI, fmt.Sprintf("%s with %v, %s", answer.Action, answer.Content["code"], req.Params.RequestState)), nil
	})
	s.MCP.AddResourceTemplate(&mcp.ResourceTemplate{Name: "any", URITemplate: "file:///any/{name}"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return contents(req.Params.URI, "any"), nil
	})
}

func contents(uri, body string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: body}}}
}
