package wiretest

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/wirelog"
)

func has(hop wirelog.Hop, kind wirelog.Kind, part string) func(wirelog.Entry) bool {
	return func(e wirelog.Entry) bool {
		return e.Hop == hop && e.Kind == kind && strings.Contains(string(e.Data), part)
	}
}

func TestCancelWhileTheUserIsAsked(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.raw("2025-11-25", `{"elicitation":{}}`)
	stream := c.post(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"pick","arguments":{}}}`)
	w.until("the question", has(wirelog.Downstream, wirelog.Event, "elicitation/create"))
	_ = c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call","reason":"changed my mind"}}`).Close()
	rest, err := io.ReadAll(stream)
	if err != nil || strings.Contains(string(rest), `"id":"call"`) {
		t.Errorf("E.9: a cancelled call gets no response: %v\n%s", err, rest)
	}
	_ = stream.Close()
	if e := w.server.Effects(); len(e) != 0 {
		t.Errorf("side effects of a cancelled call: %q", e)
	}
	w.golden("The client cancels while its user is asked: the question is withdrawn, nothing goes upstream, nothing executes.")
}

func TestALateAnswerIsIgnored(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	asked, release := make(chan struct{}), make(chan struct{})
	c := w.client(peers.ClientOptions{Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		close(asked)
		<-release
		return economy(ctx, p)
	}})
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error)
	go func() {
		_, err := c.Call(ctx, "pick", nil)
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; err == nil {
		t.Error("the cancelled call succeeded")
	}
	w.until("the cancellation", has(wirelog.Downstream, wirelog.Request, "notifications/cancelled"))
	w.settled()
	close(release)
	w.until("the late answer", has(wirelog.Downstream, wirelog.Request, `"action":"accept"`))
	w.settled()
	expect(t, w.call(c, "echo", nil), "{}") // the session lives on
	if e := w.server.Effects(); len(e) != 0 {
		t.Errorf("D-T21: a cancelled call executed: %q", e)
	}
	if n := w.server.Requests("tools/call"); n != 2 {
		t.Errorf("D-T21: %d upstream calls, want those of pick and echo", n)
	}
}

func TestCancelOfARunningCall(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.raw("2025-11-25", `{}`)
	response := make(chan string)
	go func() {
		response <- c.drain(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"hang","arguments":{}}}`)
	}()
	w.server.Wait(t, w.ctx, "the call", func() bool { return w.server.Requests("hang started") == 1 })
	c.drain(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`)
	if got := <-response; strings.Contains(got, "call") {
		t.Errorf("E.9: a cancelled call gets no response: %s", got)
	}
	w.server.Wait(t, w.ctx, "the cancellation", func() bool { return len(w.server.Cancelled()) == 1 })
	w.until("the upstream stream to be closed", has(wirelog.Upstream, wirelog.Abandoned, ""))
	w.golden("Cancellation of a running call: the notification becomes the close of the upstream response.")
}

func TestProgressAcrossRounds(t *testing.T) {
	// A step ends when the client has seen its progress: the order is fixed.
	seen := make(chan struct{}, 1)
	w := newWire(t, peers.ServerOptions{Step: func(ctx context.Context, _ string) {
		select {
		case <-seen:
		case <-ctx.Done():
		}
	}})
	last := 0.0
	c := w.client(peers.ClientOptions{
		Elicit: answers(map[string]map[string]any{"Go on?": {"ok": true}}),
		Progress: func(p *mcp.ProgressNotificationParams) {
			if p.Progress <= last {
				t.Errorf("progress went from %v to %v", last, p.Progress)
			}
			last = p.Progress
			seen <- struct{}{}
		},
	})
	params := &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 2, "ask": true}, Meta: mcp.Meta{"progressToken": 7}}
	res, err := c.CallTool(w.ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, peers.Text(res), "worked 2 steps")
	w.golden("Progress rises across rounds although the server starts again, and bears the client's own token.")
}

func TestErrors(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{})
	for _, code := range []int{-32602, -32603, -32001, -32020, -32042} {
		if got := w.call(c, "fail", map[string]any{"code": code}); !strings.Contains(got, "as you asked") {
			t.Errorf("code %d: %q", code, got)
		}
	}
	expect(t, w.call(c, "fail", nil), "tool error: the tool failed")
	if got := w.call(c, "nobody", nil); !strings.HasPrefix(got, "error: ") {
		t.Errorf("unknown tool: %q", got)
	}
	if _, err := c.ReadResource(w.ctx, &mcp.ReadResourceParams{URI: "file:///none"}); err == nil {
		t.Error("an unknown resource was read")
	}
	w.golden("Errors: codes of the modern era do not reach a legacy client, HTTP status stays 200.")
}

func TestResultsBecomeLegacyResults(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{Version: "2025-06-18"})
	expect(t, w.call(c, "weather", nil), `{"celsius":21.50}`)
	w.call(c, "numbers", nil)
	w.golden("Structured content: an object passes, anything else is wrapped; modern members are gone.")
}

func TestMissingCapability(t *testing.T) {
	w := newWire(t, peers.ServerOptions{})
	c := w.client(peers.ClientOptions{})
	if got := w.call(c, "summarize", nil); !strings.HasPrefix(got, "tool error: ") {
		t.Errorf("sampling without the capability: %q", got)
	}
	w.golden("The client cannot sample: the server refuses before it asks, and the model is told why.")
}
