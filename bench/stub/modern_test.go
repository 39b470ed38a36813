package stub_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/bench/stub"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}%s}`

// ask builds a modern tools/call of tool; more is added to params.
func ask(id, tool, metaMore, more string) *http.Request {
	return modern("tools/call", tool, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":{"n":"abc"},%s%s}}`,
		id, tool, fmt.Sprintf(meta, metaMore), more))
}

func modern(method, name, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, stub.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	if name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	return r
}

func do(h http.Handler, r *http.Request) (int, []byte) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Code, body
}

func TestModernServesAThreeRoundCall(t *testing.T) {
	m := stub.NewModern(5)
	more := ""
	for round := range 3 {
		code, body := do(m, ask(fmt.Sprint(round), stub.Ask3, "", more))
		state := scan.Path(body, "result", "requestState")
		if code != 200 || !scan.Is(scan.Path(body, "result", "resultType"), "input_required") || state == nil {
			t.Fatalf("round %d: %d %s", round, code, body)
		}
		more = fmt.Sprintf(`,"requestState":%s,"inputResponses":{"confirm":{"action":"accept","content":{"v":"abc/%d"}}}`, state, round)
	}
	_, body := do(m, ask("3", stub.Ask3, "", more))
	content := scan.Path(body, "result", "content")
	if !stub.IsResult(scan.Get(content[1:], "text"), stub.Ask3, "abc") {
		t.Errorf("%s", body)
	}
}

func TestModernStreamsProgress(t *testing.T) {
	_, body := do(stub.NewModern(5), ask("1", stub.Steps, `,"progressToken":"t"`, ""))
	if n := strings.Count(string(body), `"progressToken":"t"`); n != stub.StepCount || strings.Count(string(body), "data: ") != stub.StepCount+1 {
		t.Errorf("%d notifications:\n%s", n, body)
	}
}

func TestModernRefusesWhatTheProtocolForbids(t *testing.T) {
	m := stub.NewModern(5)
	_, first := do(m, ask("1", stub.Ask, "", ""))
	state := string(scan.Path(first, "result", "requestState"))
	answer := `,"inputResponses":{"confirm":{"action":"accept","content":{"v":"abc/0"}}}`
	if code, body := do(m, ask("2", stub.Ask, "", `,"requestState":`+state+answer)); code != 200 {
		t.Fatalf("the right retry: %d %s", code, body)
	}
	if code, _ := do(m, modern("server/discover", "", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+fmt.Sprintf(meta, "")+`}}`)); code != 200 {
		t.Fatalf("discover: %d", code)
	}
	with := func(r *http.Request, name, value string) *http.Request { r.Header.Set(name, value); return r }
	without := func(r *http.Request, name string) *http.Request { r.Header.Del(name); return r }
	for name, r := range map[string]*http.Request{
		"no method header":        without(ask("1", stub.Echo, "", ""), "Mcp-Method"),
		"wrong method header":     with(ask("1", stub.Echo, "", ""), "Mcp-Method", "tools/list"),
		"no name header":          without(ask("1", stub.Echo, "", ""), "Mcp-Name"),
		"wrong name header":       with(ask("1", stub.Echo, "", ""), "Mcp-Name", stub.Ask),
		"no version header":       without(ask("1", stub.Echo, "", ""), "Mcp-Protocol-Version"),
		"legacy version header":   with(ask("1", stub.Echo, "", ""), "Mcp-Protocol-Version", "2025-11-25"),
		"session id":              with(ask("1", stub.Echo, "", ""), "Mcp-Session-Id", "s"),
		"accept JSON only":        with(ask("1", stub.Echo, "", ""), "Accept", "application/json"),
		"no meta":                 modern("tools/call", stub.Echo, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":"a"}}}`),
		"null id":                 ask("null", stub.Echo, "", ""),
		"state of another call":   ask("2", stub.Ask3, "", `,"requestState":`+state+answer),
		"state altered":           ask("2", stub.Ask, "", `,"requestState":"`+strings.ToUpper(state[1:])+answer),
		"state without answer":    ask("2", stub.Ask, "", `,"requestState":`+state),
		"answer without state":    ask("2", stub.Ask, "", answer),
		"wrong answer":            ask("2", stub.Ask, "", `,"requestState":`+state+strings.Replace(answer, "abc/0", "abc/1", 1)),
		"two answers":             ask("2", stub.Ask, "", `,"requestState":`+state+strings.Replace(answer, `}}}`, `}},"x":{}}`, 1)),
		"retry under the same id": ask("1", stub.Ask, "", `,"requestState":`+state+answer),
		"GET":                     httptest.NewRequest(http.MethodGet, stub.Path, nil),
		"DELETE":                  httptest.NewRequest(http.MethodDelete, stub.Path, nil),
	} {
		if code, body := do(m, r); code < 400 {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	noElicitation := strings.Replace(meta, `"elicitation":{}`, "", 1)
	r := modern("tools/call", stub.Ask, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"n":"a"},`+fmt.Sprintf(noElicitation, "")+`}}`)
	if code, body := do(m, r); code != 400 || !strings.Contains(string(body), "-32021") {
		t.Errorf("asked a client without elicitation: %d %s", code, body)
	}
}
