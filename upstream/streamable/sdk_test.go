package streamable

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// newSDKServer is a real modern server: the Go SDK's, stateless.
func newSDKServer(t testing.TB) (*sdk.Server, string) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "écho"}, func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
	})
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"region": map[string]any{"type": "string", "x-mcp-header": "Region"}}}
	s.AddTool(&sdk.Tool{Name: "routed", InputSchema: schema}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "routed"}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "slow", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1}); err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return s, srv.URL
}

func TestGoSDKServerAnswersDiscoverListAndCall(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		_, url := newSDKServer(t)
		c := newClient(t, url, opt)
		if ans := mustDo(t, c, call(mcp.MethodDiscover, "")); !strings.Contains(string(ans.Result), "2026-07-28") {
			t.Fatalf("discover: %+v", ans)
		}
		if ans := mustDo(t, c, call(mcp.MethodToolsList, "")); !rawjson.Has(ans.Result, "tools") {
			t.Fatalf("tools/list: %+v", ans)
		}
		ans := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"echo","arguments":{"text":"hi"}`))
		if !strings.Contains(string(ans.Result), `"hi"`) {
			t.Fatalf("tools/call: %s %v", ans.Result, ans.Error)
		}
	})
}

func TestGoSDKServerStreamsProgressBeforeTheResult(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		_, url := newSDKServer(t)
		c := newClient(t, url, opt)
		cl := call(mcp.MethodToolsCall, `"name":"slow","arguments":{}`)
		cl.Params = []byte(strings.Replace(string(cl.Params), `"_meta":{`, `"_meta":{"progressToken":7,`, 1))
		var seen []string
		ans, err := c.Do(context.Background(), cl, func(m jsonrpc.Message) { seen = append(seen, m.Method) })
		if err != nil || !strings.Contains(string(ans.Result), "done") {
			t.Fatalf("answer %+v, error %v", ans, err)
		}
		if len(seen) != 1 || seen[0] != mcp.NotificationProgress {
			t.Fatalf("notifications: %v", seen)
		}
	})
}

// B-25 from a cold cache, against the SDK's own header validation.
func TestB25GoSDKHeaderMismatchIsRepairedOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		_, url := newSDKServer(t)
		c := newClient(t, url, opt)
		for range 2 {
			ans := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"routed","arguments":{"region":"Zürich"}`))
			if !strings.Contains(string(ans.Result), "routed") {
				t.Fatalf("tools/call: %s %v", ans.Result, ans.Error)
			}
		}
	})
}

// go-sdk 1.8.0 compares Mcp-Name without decoding it.
func TestB15GoSDKGetsAnEncodedNameRaw(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		_, url := newSDKServer(t)
		c := newClient(t, url, opt)
		for range 2 {
			ans := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"écho","arguments":{"text":"hi"}`))
			if !strings.Contains(string(ans.Result), `"hi"`) {
				t.Fatalf("tools/call: %s %v", ans.Result, ans.Error)
			}
		}
		if !c.rawNames.Load() {
			t.Fatal("the raw form was not remembered")
		}
	})
}

func TestGoSDKListenDeliversListChangedAndEndsWithItsContext(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		s, url := newSDKServer(t)
		c := newClient(t, url, opt)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var seen []string
		err := c.Listen(ctx, call(mcp.MethodListen, `"notifications":{"toolsListChanged":true}`), func(m jsonrpc.Message) {
			seen = append(seen, m.Method)
			switch m.Method {
			case mcp.NotificationAcknowledged:
				s.RemoveTools("echo")
			case mcp.NotificationToolsListChanged:
				cancel()
			}
		})
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Canceled {
			t.Fatalf("Listen ended with %v", err)
		}
		if len(seen) != 2 || seen[0] != mcp.NotificationAcknowledged || seen[1] != mcp.NotificationToolsListChanged {
			t.Fatalf("messages: %v", seen)
		}
	})
}

func TestNameThatTheServerCannotReadFromItsHeaderIsRefusedAsAParameter_B15(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		_, url := newSDKServer(t)
		c := newClient(t, url, opt)
		for _, named := range []*upstream.Call{
			call(mcp.MethodToolsCall, `"name":"ec\r\nho","arguments":{}`),
			call(mcp.MethodPromptsGet, `"name":"ec\r\nho"`),
			call(mcp.MethodResourcesRead, `"uri":"file:///ec\r\nho"`),
		} {
			ans := mustDo(t, c, named)
			if ans.Error == nil || ans.Error.Code != jsonrpc.CodeInvalidParams || !strings.Contains(ans.Error.Message, `ec\r\nho`) {
				t.Errorf("%s: %s %+v", named.Method, ans.Result, ans.Error)
			}
		}
	})
}
