package passthrough

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// outcome is a Reply that keeps what a request got.
type outcome struct {
	downstream.Reply
	done chan string
}

func (o *outcome) Flush()                        {}
func (o *outcome) Finish(msg downstream.Message) { o.done <- string(msg.AppendTo(nil)) }
func (o *outcome) Abandon()                      { o.done <- "abandoned" }

// Modern requests of connections take turns like any others, but for those that only listen,
// and one that is cancelled before its turn is never sent.
func TestModernRequestsOverConnectionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var mu sync.Mutex
		var sent []string
		server := &scripted{verbatim: func(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
			mu.Lock()
			sent = append(sent, call.Method)
			mu.Unlock()
			<-goOn
			return &upstream.Answer{Result: []byte(`{}`)}, nil
		}}
		conv := NewConnections(ConnectionOptions{Server: server, Turns: turns.New(2)}).Open()
		cancels := map[int]context.CancelCauseFunc{}
		ask := func(id int, method string) *outcome {
			msg, _ := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"%s","params":{}}`, id, method))
			out := &outcome{done: make(chan string, 1)}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancels[id] = cancel
			go conv.Serve(ctx, downstream.Caller{}, downstream.NewRequest(msg), out)
			synctest.Wait()
			return out
		}
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(sent, want) {
				t.Errorf("%s: the server got %q, want %q", what, sent, want)
			}
		}
		first, second, third, listen := ask(1, "tools/call"), ask(2, "prompts/get"), ask(3, "resources/read"), ask(4, "subscriptions/listen")
		expect("a flood", "tools/call", "subscriptions/listen")
		cancels[2](downstream.ErrCancelled)
		if got := <-second.done; got != "abandoned" {
			t.Errorf("the cancelled one ends with %s", got)
		}
		goOn <- struct{}{}
		goOn <- struct{}{}
		<-first.done
		<-listen.done
		expect("the next", "tools/call", "subscriptions/listen", "resources/read")
		goOn <- struct{}{}
		<-third.done
	})
}

// A subscription that the bridge ends, as a stop and the end of a token do, ends with the name that the client knows it by.
func TestASubscriptionThatTheBridgeEndsHasItsNameOverConnections(t *testing.T) {
	for _, id := range []string{`7`, `"L"`} {
		synctest.Test(t, func(t *testing.T) {
			server := &scripted{verbatim: func(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			conv := NewConnections(ConnectionOptions{Server: server}).Open()
			ctx, cancel := context.WithCancel(t.Context())
			msg, _ := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{}}`, id))
			out := &outcome{done: make(chan string, 1)}
			go conv.Serve(ctx, downstream.Caller{}, downstream.NewRequest(msg), out)
			synctest.Wait()
			cancel()
			want := `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
			if got := <-out.done; got != want {
				t.Errorf("ends with %s, want %s", got, want)
			}
		})
	}
}

// A server that is known to be a modern one, and answers one request as others do: its client is told what the server
// said, and not to begin as clients of old servers do. Whoever asks what the server is may do that at any time.
func TestOneStrangeAnswerOfAModernServerSendsNobodyBack_A11(t *testing.T) {
	server := &scripted{verbatim: func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
		return nil, &upstream.Failure{Cause: upstream.NotModern, Status: 404, Detail: "the upstream answered HTTP 404"}
	}}
	for name, test := range map[string]struct {
		modern func() bool
		method string
		want   string
	}{
		"a known one":        {func() bool { return true }, "tools/call", `"message":"the upstream answered HTTP 404"`},
		"a known one, asked": {func() bool { return true }, "server/discover", "initialize first"},
		"an unknown one":     {func() bool { return false }, "tools/call", "initialize first"},
		"one of any kind":    {nil, "tools/call", "initialize first"},
	} {
		conv := NewConnections(ConnectionOptions{Server: server, Modern: test.modern}).Open()
		msg, _ := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"%s","params":{}}`, test.method))
		out := &outcome{done: make(chan string, 1)}
		conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(msg), out)
		if got := <-out.done; !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What is cancelled while the bridge waits for its server to start is never sent.
func TestAModernRequestThatIsCancelledBeforeItsServerStartedIsNotSent(t *testing.T) {
	for _, method := range []string{"tools/call", "subscriptions/listen"} {
		synctest.Test(t, func(t *testing.T) {
			started := make(chan struct{})
			server := &scripted{verbatim: func(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
				t.Errorf("the server got %s", call.Method)
				return &upstream.Answer{Result: []byte(`{}`)}, nil
			}}
			conv := NewConnections(ConnectionOptions{Server: server, Turns: turns.New(2), Legacy: func(context.Context) bool { <-started; return false }}).Open()
			ctx, cancel := context.WithCancelCause(t.Context())
			msg, _ := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"%s","params":{}}`, method))
			out := &outcome{done: make(chan string, 1)}
			go conv.Serve(ctx, downstream.Caller{}, downstream.NewRequest(msg), out)
			synctest.Wait()
			cancel(downstream.ErrCancelled)
			close(started)
			if got := <-out.done; got != "abandoned" {
				t.Errorf("%s ends with %s", method, got)
			}
		})
	}
}

func TestALongProgressTokenIsRefusedOverConnections(t *testing.T) {
	server := answering(upstream.Answer{Result: []byte(`{}`)}, nil)
	conv := NewConnections(ConnectionOptions{Server: server}).Open()
	msg, _ := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"%s"}}}`, strings.Repeat("t", 1<<10)))
	out := &outcome{done: make(chan string, 1)}
	conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(msg), out)
	if got := <-out.done; !strings.Contains(got, "-32602") || len(server.seen()) > 0 {
		t.Errorf("%s, and the server got %s", got, server.seen())
	}
}
