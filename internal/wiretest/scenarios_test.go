package wiretest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
)

type elicit = func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)

// answers answers each elicitation by its message.
func answers(byMessage map[string]map[string]any) elicit {
	return func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return peers.Accept(byMessage[p.Message])
	}
}

func action(name string) elicit {
	return func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: name}, nil
	}
}

var economy = answers(map[string]map[string]any{"Which class?": {"class": "e"}})

func TestPlainCall(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{})
	args := json.RawMessage(`{"n":9007199254740993,"text":"<a & b>"}`)
	res, err := c.CallTool(w.ctx, &mcp.CallToolParams{Name: "echo", Arguments: args, Meta: mcp.Meta{"example.com/trace": 1}})
	if err != nil || len(res.Content) != 1 {
		t.Fatalf("echo: %v, %v", res, err)
	}
	w.golden("A plain call: envelope and headers are translated, arguments and result keep their bytes.")
}

func TestElicitation(t *testing.T) {
	for version, want := range map[string]string{
		"2024-11-05": "", "2025-03-26": "", // no elicitation yet: the server refuses, the model is told
		"2025-06-18": "picked e",
		"2025-11-25": "picked e",
	} {
		t.Run(version, func(t *testing.T) {
			w := newWire(t, peers.ServerOptions{})
			c := w.client(peers.ClientOptions{Version: version, Elicit: economy})
			if got := w.call(c, "pick", nil); want != "" {
				expect(t, got, want)
			}
			w.golden("One question to a client of " + version + ".")
		})
	}
}

func TestTwoRounds(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{Elicit: answers(map[string]map[string]any{
		"Where do you want to fly?": {"city": "OSL"},
		"Which seat to OSL?":        {"row": 12, "window": true},
	})})
	expect(t, w.call(c, "book", map[string]any{"passenger": "Ada"}), "Booked Ada to OSL, row 12, window true.")
	w.golden("Two rounds: each retry carries this round's answers and the latest request state, byte for byte.")
}

func TestThreeInputsInOneRound(t *testing.T) {
	var all sync.WaitGroup // no answer before all three were asked: settles the order
	all.Add(3)
	asked := func() { all.Done(); all.Wait() }
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked()
			return peers.Accept(map[string]any{"days": 3})
		},
		Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			asked()
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "Rome"}}, nil
		},
		Roots:       []string{"file:///home"},
		RootsCalled: asked,
	})
	expect(t, w.call(c, "trip", nil), "Rome; 3 days (accept); files in file:///home")
	w.golden("Three inputs in one round: a form, the model and the roots, asked together, answered in one retry.")
}

func TestStateOnlyRound(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{Elicit: economy})
	expect(t, w.call(c, "busy", map[string]any{"rounds": 2}), "done after 2 state-only rounds")
	w.golden("State-only rounds: the server sheds load, the client sees nothing of it.")
}

func TestDecline(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{Elicit: action("decline")})
	expect(t, w.call(c, "pick", nil), "nothing picked: decline")
	if e := w.server.Effects(); len(e) != 0 {
		t.Errorf("side effects after a decline: %q", e)
	}
	w.golden("A decline is an answer: the server decides what follows.")
}

func TestClientErrorIsACancel(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return nil, errors.New("no screen")
	}})
	expect(t, w.call(c, "pick", nil), "nothing picked: cancel")
	w.golden("A client that fails to ask its user counts as a cancel; inputResponses has no error form.")
}

func TestPromptAndResource(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{Elicit: answers(map[string]map[string]any{
		"Which tone?": {"tone": "warm"}, "What is the code?": {"code": "42"},
	})})
	p, err := c.GetPrompt(w.ctx, &mcp.GetPromptParams{Name: "letter", Arguments: map[string]string{"to": "Bob"}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, p.Messages[0].Content.(*mcp.TextContent).Text, "Write a warm letter to Bob (letter-1).")
	r, err := c.ReadResource(w.ctx, &mcp.ReadResourceParams{URI: peers.VaultURI})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, r.Contents[0].Text, "accept with 42, vault-1")
	w.golden("prompts/get and resources/read ask too.")
}
