package mount

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// A client that shows addresses is asked to show the sign-in, as the protocol has it:
// no browser is opened besides, the call goes on, and the client hears of the end.
func TestAClientThatShowsAddressesIsAskedToShowTheSignIn(t *testing.T) {
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	_, url := serve(t, signsIn(t, i, []string{"false", "no browser is to be opened"}, 30*time.Second))
	asked := make(chan *sdk.ElicitParams, 5)
	client := peers.NewClient(t, url, peers.ClientOptions{URL: true, Elicit: func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		if p.Mode == "url" {
			asked <- p
		}
		return peers.Accept(nil)
	}})
	ended := make(chan string, 1)
	go func() {
		result, err := client.Call(patience(t), "echo", map[string]any{"text": "hi"})
		if err != nil {
			ended <- err.Error()
			return
		}
		ended <- peers.Text(result)
	}()
	question := <-asked
	browse(t, question.URL) // after the client has said that it shows the page, or before
	if text := <-ended; strings.Contains(text, "sign") {
		t.Errorf("the call got %s", text)
	}
	if !strings.Contains(question.Message, "wants you to sign in") || question.ElicitationID == "" || len(asked) != 0 || i.Get(&i.Tabs) != 1 {
		t.Errorf("asked %+v, and %d times more; %d tabs", question, len(asked), i.Tabs)
	}
	client.WaitFor(t, patience(t), "notifications/elicitation/complete", 1)
}

func TestWhoDeclinesTheSignInIsTold(t *testing.T) {
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	_, url := serve(t, signsIn(t, i, []string{"true"}, 30*time.Second))
	client := peers.NewClient(t, url, peers.ClientOptions{URL: true, Elicit: func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}})
	result, err := client.Call(patience(t), "echo", map[string]any{"text": "hi"})
	if err != nil || !result.IsError || !strings.Contains(peers.Text(result), "declined to sign in") {
		t.Errorf("the call got %v %v", peers.Text(result), err)
	}
}
