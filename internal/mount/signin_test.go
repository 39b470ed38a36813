package mount

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/peers/issuer"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// signsIn are options of a mount whose bridge signs in itself. browser "" is one
// that shows nothing.
func signsIn(t *testing.T, i *issuer.Issuer, browser []string, wait time.Duration) Options {
	t.Helper()
	if browser == nil {
		browser = []string{"true"}
	}
	dir, err := os.MkdirTemp("", "logins-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a probe that nobody waits for may still write there
	// Connections of its own: the default's would outlive the test.
	agent, err := authorize.New(authorize.Options{
		Server: i.Endpoint(), Dir: dir, Store: "file", Browser: browser,
		Resources: &http.Client{Transport: &http.Transport{}}, Issuers: &http.Client{Transport: &http.Transport{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Upstream: streamable.Options{URL: i.Endpoint(), StandardTransport: testmode.StandardHTTP()},
		SignIn:   &signin.Account{Agent: agent, Wait: wait, Heartbeat: time.Millisecond},
	}
}

// agreeingBrowser is the test binary as a browser whose person agrees to everything.
func agreeingBrowser(t *testing.T) []string {
	t.Setenv(processMode, browser)
	return []string{os.Args[0]}
}

// browse follows the address in a text, as a person would.
func browse(t *testing.T, text string) {
	t.Helper()
	address := regexp.MustCompile(`http://\S+`).FindString(text)
	if address == "" {
		t.Fatalf("there is no address in %q", text)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(page), "You are signed in") {
		t.Errorf("the browser shows %s", page)
	}
}

// A client that knows nothing of sign-ins opens its session at once, is told where
// to sign in, hears that there is more to see, and then simply works.
func TestTheSessionOpensBeforeAnybodySignsIn(t *testing.T) {
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	_, url := serve(t, signsIn(t, i, nil, 300*time.Millisecond))
	ctx := patience(t)
	client := agreeable(t, url, peers.ClientOptions{Standalone: true})
	_, err := client.ListTools(ctx, nil)
	for err != nil && strings.Contains(err.Error(), "being prepared") && ctx.Err() == nil { // a busy machine
		_, err = client.ListTools(ctx, nil)
	}
	if err == nil {
		t.Fatal("the tools were listed without a login")
	}
	result, failed := client.Call(ctx, "echo", nil)
	if failed != nil || !result.IsError || !strings.Contains(peers.Text(result), "wants you to sign in") {
		t.Fatalf("a call got %v %v", result, failed)
	}
	browse(t, err.Error())
	client.WaitFor(t, ctx, "notifications/tools/list_changed", 1)
	if list, err := client.ListTools(ctx, nil); err != nil || len(list.Tools) == 0 {
		t.Errorf("after the sign-in: %v", err)
	}
	if i.Get(&i.Tabs) != 1 {
		t.Errorf("%d tabs", i.Tabs)
	}
}

// A call waits for the person, tells its client that it is alive, and goes on.
func TestACallWaitsForTheSignIn(t *testing.T) {
	i := issuer.New(t)
	server := peers.New(peers.ServerOptions{})
	i.MCP = server.Handler()
	_, url := serve(t, signsIn(t, i, agreeingBrowser(t), 30*time.Second))
	beats := make(chan string, 100)
	client := agreeable(t, url, peers.ClientOptions{Progress: func(p *sdk.ProgressNotificationParams) {
		select {
		case beats <- p.Message:
		default:
		}
	}})
	params := &sdk.CallToolParams{Name: "greet", Arguments: map[string]any{}}
	params.SetProgressToken("p")
	result, err := client.CallTool(patience(t), params)
	if err != nil || result.IsError {
		t.Fatalf("got %v %v", result, err)
	}
	select {
	case first := <-beats:
		if first != "Waiting for you to sign in" {
			t.Errorf("the client heard %q", first)
		}
	default:
		t.Error("the client heard nothing while it waited")
	}

	i.Set(func() { i.Wants = "write" })
	if result, err := client.Call(patience(t), "greet", map[string]any{}); err != nil || result.IsError {
		t.Errorf("after a step-up: %v %v", result, err)
	}
	if last := i.Requests[len(i.Requests)-1]; i.Get(&i.Tabs) != 2 || last.Get("resource") != i.Endpoint() {
		t.Errorf("%d tabs; the last request was %v", i.Tabs, last)
	}
}

// After a restart without the network's help: the login is kept, and what the
// server said of itself too.
func TestWhatTheServerSaidIsKept(t *testing.T) {
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	opt := signsIn(t, i, agreeingBrowser(t), 30*time.Second)
	_, url := serve(t, opt)
	first := agreeable(t, url, peers.ClientOptions{})
	if _, err := first.ListTools(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	again := agreeable(t, url, peers.ClientOptions{})
	i.Set(func() { clear(i.Live); clear(i.Refresh) })
	later := agreeable(t, url, peers.ClientOptions{})
	want, _ := json.Marshal(again.InitializeResult().Capabilities)
	got, _ := json.Marshal(later.InitializeResult().Capabilities)
	if string(got) != string(want) {
		t.Errorf("without the login the server has %s, with it %s", got, want)
	}
}

// Modern clients, and legacy ones that are handed on, are signed in the same way.
func TestWhatGoesPastTheBridgeIsSigned(t *testing.T) {
	i := issuer.New(t)
	i.MCP = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newLegacy("2025-06-18") }, nil)
	_, url := serve(t, signsIn(t, i, agreeingBrowser(t), 30*time.Second))
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	req, _ := http.NewRequestWithContext(patience(t), http.MethodPost, url, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/list")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || i.Get(&i.Tabs) != 1 {
		t.Errorf("a modern request got %s; %d tabs", resp.Status, i.Tabs)
	}
	legacy := agreeable(t, url, peers.ClientOptions{})
	if legacy.InitializeResult().ServerInfo.Name == "mcp-bridge" {
		t.Error("the client is not the server's")
	}
}
