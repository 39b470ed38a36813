package passthrough

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// scripted is a server that the test speaks for.
type scripted struct {
	verbatim func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error)

	mu       sync.Mutex
	calls    []string // method and params
	notified []string
}

func (s *scripted) Verbatim(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	s.mu.Lock()
	s.calls = append(s.calls, call.Method+" "+string(call.Params))
	s.mu.Unlock()
	return s.verbatim(ctx, call, notify)
}

func (s *scripted) Notify(_ context.Context, call *upstream.Call) error {
	method, params := call.Method, call.Params
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notified = append(s.notified, method+" "+string(params))
	return nil
}

func (s *scripted) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// answering is a server that gives one answer.
func answering(ans upstream.Answer, err error, notifications ...jsonrpc.Message) *scripted {
	return &scripted{verbatim: func(_ context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		for _, n := range notifications {
			notify(n)
			call.Idle()
		}
		if err != nil {
			return nil, err
		}
		return &ans, nil
	}}
}

const protocol = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`

// request is a modern request; meta and params are more members of these.
func request(method, meta, params string) *http.Request {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"c","method":%q,"params":{"_meta":{%s%s}%s}}`, method, protocol, meta, params)
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
	return r
}

func ask(t *testing.T, opt ProcessOptions, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	p := NewProcess(opt)
	defer p.Close()
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	return rec
}

func TestWhatAProcessAnswersGetsTheStatusOfItsKind_E39(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ans    upstream.Answer
		err    error
		status int
		body   string
	}{
		{"a result", upstream.Answer{Result: []byte(`{"resultType":"complete", "x":1}`)}, nil, 200, `{"jsonrpc":"2.0","id":"c","result":{"resultType":"complete", "x":1}}`},
		{"unknown method", upstream.Answer{Error: &jsonrpc.Error{Code: -32601, Message: "m"}}, nil, 404, `"code":-32601`},
		{"invalid params", upstream.Answer{Error: &jsonrpc.Error{Code: -32602, Message: "m"}}, nil, 400, `"code":-32602`},
		{"missing capability", upstream.Answer{Error: &jsonrpc.Error{Code: -32021, Message: "m", Data: []byte(`{"a":1}`)}}, nil, 400, `"data":{"a":1}`},
		{"unsupported version", upstream.Answer{Error: &jsonrpc.Error{Code: -32022, Message: "m"}}, nil, 400, `"code":-32022`},
		{"its own error", upstream.Answer{Error: &jsonrpc.Error{Code: -32000, Message: "m"}}, nil, 200, `"code":-32000`},
		{"no answer", upstream.Answer{}, &upstream.Failure{Cause: upstream.Lost, Detail: "it ended"}, 502, `"message":"it ended","data":{"bridge":{"reason":"lost"}}`},
		{"not now", upstream.Answer{}, &upstream.Failure{Cause: upstream.Unreachable, RetryAfter: time.Second}, 503, `-32603`},
	} {
		rec := ask(t, ProcessOptions{Server: answering(tc.ans, tc.err)}, request("x/y", "", ""))
		if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.body) || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", tc.name, rec.Code, rec.Header(), rec.Body)
		}
	}
}

func TestOnlyWhatTheChannelSharesIsChanged_E46(t *testing.T) {
	s := answering(upstream.Answer{Result: []byte(`{}`)}, nil,
		jsonrpc.Message{Method: mcp.NotificationProgress, Params: []byte(`{"progressToken":7, "progress":1}`)},
		jsonrpc.Message{Method: "notifications/other", Params: []byte(`{"a" : 1}`)})
	rec := ask(t, ProcessOptions{Server: s}, request("x/y", `,"progressToken":7,"k": 1`, `, "inputResponses":{"a": {}},"requestState":"\ud800"`))
	if want := `x/y {"_meta":{` + protocol + `,"progressToken":7,"k": 1}, "inputResponses":{"a": {}},"requestState":"\ud800"}`; s.calls[0] != want {
		t.Errorf("the server got %s", s.calls[0])
	}
	if got, want := rec.Body.String(), "event: message\ndata: "+`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7, "progress":1}}`+"\n\n"+
		"event: message\ndata: "+`{"jsonrpc":"2.0","method":"notifications/other","params":{"a" : 1}}`+"\n\n"+
		"event: message\ndata: "+`{"jsonrpc":"2.0","id":"c","result":{}}`+"\n\n"; got != want {
		t.Errorf("the client got %s", got)
	}
	if h := rec.Header(); h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("with headers %v", h)
	}
}

func TestAClientThatTakesOnlyJSONGetsNoStream_E5(t *testing.T) {
	r := request("x/y", "", "")
	r.Header.Set("Accept", "application/json")
	rec := ask(t, ProcessOptions{Server: answering(upstream.Answer{Result: []byte(`{}`)}, nil, jsonrpc.Message{Method: "notifications/x"})}, r)
	if rec.Body.String() != `{"jsonrpc":"2.0","id":"c","result":{}}` {
		t.Errorf("the client got %s", rec.Body)
	}
}

func TestLogMessagesReachOnlyWhoTheyAreMeantFor_C8(t *testing.T) {
	said := jsonrpc.Message{Method: mcp.NotificationMessage, Params: []byte(`{"data":"said"}`)}
	for _, tc := range []struct {
		meta string
		may  bool
		want bool
	}{{"", true, false}, {`,"io.modelcontextprotocol/logLevel":"debug"`, true, true}, {`,"io.modelcontextprotocol/logLevel":"debug"`, false, false}} {
		visits := 0
		opt := ProcessOptions{Server: answering(upstream.Answer{Result: []byte(`{}`)}, nil, said), Logs: func(string) (func() bool, func()) {
			visits++
			return func() bool { return tc.may }, func() { visits-- }
		}}
		if rec := ask(t, opt, request("x/y", tc.meta, "")); strings.Contains(rec.Body.String(), "said") != tc.want || visits != 0 {
			t.Errorf("%+v: the client got %s, %d visits", tc, rec.Body, visits)
		}
	}
}

func TestMessagesThatAProcessDoesNotGet(t *testing.T) {
	s := answering(upstream.Answer{Result: []byte(`{}`)}, nil)
	wrong := request("x/y", "", "")
	wrong.Header.Set("Mcp-Method", "tools/list")
	for name, tc := range map[string]struct {
		r      *http.Request
		legacy bool
		status int
		code   string
	}{
		"headers that differ": {wrong, false, 400, "-32020"},
		"no message":          {httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{")), false, 400, "-32700"},
		"a long token":        {request("x/y", `,"progressToken":"`+strings.Repeat("t", 1<<10)+`"`, ""), false, 400, "-32602"},
		"a legacy server":     {request("x/y", "", ""), true, 400, "-32600"},
		"a cancellation": {httptest.NewRequest(http.MethodPost, "/",
			strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)), false, 202, ""},
	} {
		rec := ask(t, ProcessOptions{Server: s, Legacy: func(context.Context) bool { return tc.legacy }}, tc.r)
		if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.code) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if len(s.calls)+len(s.notified) > 0 {
		t.Errorf("the server got %s %s", s.calls, s.notified)
	}
	other := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/theirs","params":{"a": 1}}`))
	if rec := ask(t, ProcessOptions{Server: s}, other); rec.Code != http.StatusAccepted || len(s.notified) != 1 || s.notified[0] != `notifications/theirs {"a": 1}` {
		t.Errorf("another notification: %d, the server got %s", rec.Code, s.notified)
	}
}

const annotated = `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]}`

func TestArgumentsInHeadersAreComparedBeforeAnyListPassed_B24(t *testing.T) {
	s := &scripted{verbatim: func(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
		if call.Method == mcp.MethodToolsList {
			return &upstream.Answer{Result: []byte(annotated)}, nil
		}
		return &upstream.Answer{Result: []byte(`{}`)}, nil
	}}
	p := NewProcess(ProcessOptions{Server: s})
	defer p.Close()
	for value, status := range map[string]int{"eu": 200, "us": 400, "": 400} {
		r := request("tools/call", "", `,"name":"t","arguments":{"r":"eu"}`)
		r.Header.Set("Mcp-Name", "t")
		if value != "" {
			r.Header.Set("Mcp-Param-R", value)
		}
		rec := httptest.NewRecorder()
		if p.ServeHTTP(rec, r); rec.Code != status {
			t.Errorf("%q: %d %s", value, rec.Code, rec.Body)
		}
	}
	lists := 0
	for _, c := range s.seen() {
		if strings.HasPrefix(c, "tools/list") {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("the tools were listed %d times", lists)
	}
}

// stuck is a server that notifies once and then waits for the end of the request.
func stuck(first *jsonrpc.Message) (s *scripted, ended chan error) {
	ended = make(chan error, 8)
	return &scripted{verbatim: func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		if first != nil {
			notify(*first)
			call.Idle()
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, &upstream.Failure{Cause: upstream.Canceled, Detail: "cancelled", Err: ctx.Err()}
	}}, ended
}
