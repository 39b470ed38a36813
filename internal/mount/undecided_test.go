package mount

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/peers/issuer"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
)

// guarded puts a legacy server of the SDK behind a sign-in.
func guarded(t *testing.T, versions ...string) *issuer.Issuer {
	t.Helper()
	server := newLegacy(versions...)
	t.Cleanup(func() { endAll(server) }) // when no session can be about to begin any more
	i := issuer.New(t)
	i.MCP = taciturn(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() { endCalls(server) })
	return i
}

// taciturn is a legacy server that does not say which revisions it speaks when it is asked
// in another one: only a handshake shows that, which needs credentials, too.
func taciturn(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "" {
			http.Error(w, "Bad Request: no valid session", http.StatusBadRequest)
			return
		}
		server.ServeHTTP(w, r)
	})
}

// Where clients' tokens end, no server sees them, whatever it is asked to find out what it is.
func TestNoTokenOfAClientReachesALegacyServer_H1(t *testing.T) {
	var brought atomic.Int32
	server := newLegacy("2025-06-18")
	handler := taciturn(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			brought.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { endSessions(at, server) })
	opt := over(at.URL)
	opt.Behalf = &signin.Behalf{}
	_, url := serve(t, opt)
	req := request(t, http.MethodPost, url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	req.Header.Set("Authorization", "Bearer of-a-client")
	resp, err := wire.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(body), `"name":"sdk"`) || brought.Load() != 0 {
		t.Errorf("%d requests came with credentials; the client got %s", brought.Load(), body)
	}
}

// overStdio serves one client over pipes, as over standard input and output.
func overStdio(t *testing.T, m *Mount, opt peers.ClientOptions) (client *peers.Client, ended <-chan error) {
	t.Helper()
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- legacy.ServeStdio(t.Context(), in, out, legacy.Options{}, m.Backend)
		_ = out.Close() // as the end of the process does
	}()
	opt.Elicit = func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) { return peers.Accept(nil) }
	client, err := peers.Connect(patience(t), &sdk.IOTransport{Reader: fromBridge, Writer: toBridge}, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, done
}

func mountFor(t *testing.T, opt Options) *Mount {
	t.Helper()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// A legacy server is found out after the sign-in. The session goes on: the client is
// connected to the server, and the request that caused the sign-in goes there. What else
// a conversation consists of is the relay's: TestEveryClientReachesALegacyServerOfAnyKind.
func TestALegacyServerTakesOverAfterTheSignIn_A16(t *testing.T) {
	i := guarded(t, "2025-06-18")
	client, _ := overStdio(t, mountFor(t, signsIn(t, i, agreeingBrowser(t), 30*time.Second)), peers.ClientOptions{Version: "2025-06-18"})
	if name := client.InitializeResult().ServerInfo.Name; name != "mcp-bridge" {
		t.Fatalf("the session opened with %q: the sign-in came first", name)
	}
	list, err := client.ListTools(patience(t), nil)
	if err != nil || len(list.Tools) != 4 {
		t.Fatalf("the request that caused the sign-in got %+v, %v", list, err)
	}
	client.WaitFor(t, patience(t), "notifications/tools/list_changed", 1)
	result, err := client.CallTool(patience(t), &sdk.CallToolParams{Name: "ask", Meta: sdk.Meta{"progressToken": "p"}})
	if err != nil || peers.Text(result) != "you said accept" {
		t.Errorf("a call with a question got %+v, %v", result, err)
	}
	client.WaitFor(t, patience(t), "notifications/progress", 1)
	if _, err := client.Call(patience(t), "no such tool", nil); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool: %v", err)
	}
	if i.Get(&i.Tabs) != 1 {
		t.Errorf("%d tabs", i.Tabs)
	}
}

// The person takes longer than the request waits; then the same call is the server's.
func TestALegacyServerBehindALateSignIn_A16(t *testing.T) {
	for name, dial := range ways {
		t.Run(name, func(t *testing.T) {
			i := guarded(t, "2025-06-18")
			m, base := mounted(t, signsIn(t, i, nil, 300*time.Millisecond))
			client, err := peers.Connect(patience(t), dial(t, m, base), peers.ClientOptions{
				Version: "2025-06-18", Standalone: true,
				Elicit: func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) { return peers.Accept(nil) },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			result, err := client.Call(patience(t), "ask", nil)
			for ctx := patience(t); err == nil && strings.Contains(peers.Text(result), "being prepared") && ctx.Err() == nil; { // a busy machine
				result, err = client.Call(ctx, "ask", nil)
			}
			if err != nil || !result.IsError || !strings.Contains(peers.Text(result), "wants you to sign in") {
				t.Fatalf("a call before the sign-in got %+v, %v", result, err)
			}
			browse(t, peers.Text(result))
			client.WaitFor(t, patience(t), "notifications/tools/list_changed", 1)
			if result, err := client.Call(patience(t), "ask", nil); err != nil || peers.Text(result) != "you said accept" {
				t.Errorf("the same call after it got %q, %+v, %v", peers.Text(result), result, err)
			}
		})
	}
}

// A server that wants a newer revision than the client was told cannot serve it. The
// client learns that, and its next session is the server's.
func TestALegacyServerThatIsNewerThanItsClient_A16(t *testing.T) {
	i := guarded(t, "2025-06-18")
	m := mountFor(t, signsIn(t, i, agreeingBrowser(t), 30*time.Second))
	client, ended := overStdio(t, m, peers.ClientOptions{Version: "2025-03-26"})
	if _, err := client.ListTools(patience(t), nil); err == nil ||
		!strings.Contains(err.Error(), "start your client's connection anew") && !errors.Is(err, io.EOF) { // the SDK may see the end before the message
		t.Errorf("the request got %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "legacy") {
		t.Errorf("the session ended with %v", err)
	}
	next, _ := overStdio(t, m, peers.ClientOptions{Version: "2025-06-18"})
	if _, err := next.ListTools(patience(t), nil); err != nil || i.Get(&i.Tabs) != 1 {
		t.Errorf("the next session: %v; %d tabs", err, i.Tabs)
	}
}

// Where nobody may be relayed, nothing is sent that the server could take for its own.
func TestALegacyServerWhereNobodyMayBeRelayed_A24(t *testing.T) {
	i := guarded(t, "2025-06-18")
	opt := signsIn(t, i, agreeingBrowser(t), 30*time.Second)
	opt.Relay = negotiate.RelayNever
	client, _ := overStdio(t, mountFor(t, opt), peers.ClientOptions{Version: "2025-06-18"})
	if result, err := client.Call(patience(t), "ask", nil); err == nil && !result.IsError {
		t.Errorf("the call got %+v", result)
	}
}

// A call that is cancelled while it waits for the sign-in never reaches the server.
func TestACallThatIsCancelledWhileItWaitsIsNotTheServers_A16(t *testing.T) {
	i := guarded(t, "2025-06-18")
	m := mountFor(t, signsIn(t, i, nil, 20*time.Second))
	client, _ := overStdio(t, m, peers.ClientOptions{Version: "2025-06-18"})
	ctx, cancel := context.WithCancel(patience(t))
	done := make(chan error, 1)
	go func() {
		_, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "grow"})
		done <- err
	}()
	page := m.agent.Invite(patience(t), authorize.Refusal{Status: http.StatusUnauthorized}).Error() // the one that is under way
	cancel()
	<-done
	if err := client.Ping(patience(t), nil); err != nil { // the bridge has read the cancellation before it
		t.Fatal(err)
	}
	browse(t, page)
	client.WaitFor(t, patience(t), "notifications/tools/list_changed", 1)
	list, err := client.ListTools(patience(t), nil)
	if err != nil || len(list.Tools) != 4 {
		t.Errorf("the cancelled call has grown the list: %+v, %v", list, err)
	}
}
