package mount

import (
	"context"
	"strings"
	"sync/atomic"
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

// A dialog that nobody looks at holds a call no longer than a page does: its client has patience for no more. And who has
// not answered in so short a time is asked again.
func TestASignInQuestionThatNobodyAnswersHoldsNoCallForLong(t *testing.T) {
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	_, url := serve(t, signsIn(t, i, []string{"false", "no browser is to be opened"}, time.Second))
	var asked atomic.Int32
	client := peers.NewClient(t, url, peers.ClientOptions{URL: true, Elicit: func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		asked.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	for range 2 {
		tellsWhereToSignIn(t, client)
	}
	if got := asked.Load(); got != 2 {
		t.Errorf("it was asked %d times", got)
	}
}

// The time for the question and the time for the page are one.
func TestASignInThatIsAgreedToLateHoldsACallNoLonger(t *testing.T) {
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	_, url := serve(t, signsIn(t, i, []string{"false", "no browser is to be opened"}, 4*time.Second))
	client := peers.NewClient(t, url, peers.ClientOptions{URL: true, Elicit: func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		<-time.After(3 * time.Second)
		return peers.Accept(nil)
	}})
	began := time.Now()
	tellsWhereToSignIn(t, client)
	if took := time.Since(began); took > 6500*time.Millisecond {
		t.Errorf("it takes %v", took)
	}
}

// tellsWhereToSignIn makes a call, which is to be answered with the address.
func tellsWhereToSignIn(t *testing.T, client *peers.Client) {
	t.Helper()
	result, err := client.Call(patience(t), "echo", map[string]any{"text": "hi"})
	if err != nil || !result.IsError || !strings.Contains(peers.Text(result), "try again: http://127.0.0.1:") {
		t.Errorf("the call got %v %v", peers.Text(result), err)
	}
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
