package mirror

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// modernMessage is a request of a modern client; rest follows its _meta.
func modernMessage(t *testing.T, method, rest string) *jsonrpc.Message {
	t.Helper()
	msg, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"` +
		mcp.MetaProtocolVersion + `":"2026-07-28"}` + rest + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return &msg
}

func headers(pairs ...string) http.Header {
	h := http.Header{mcp.HeaderProtocolVersion: {"2026-07-28"}}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestHeadersMustSayWhatTheBodySays_B9_B15(t *testing.T) {
	base64Of := func(s string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?=" }
	for _, tc := range []struct {
		name, method, rest string
		h                  http.Header
		fault              string
	}{
		{"a list", "tools/list", ``, headers("Mcp-Method", "tools/list"), ""},
		{"no version", "tools/list", ``, http.Header{"Mcp-Method": {"tools/list"}}, "Mcp-Protocol-Version header is missing"},
		{"another version", "tools/list", ``, headers("Mcp-Method", "tools/list", "Mcp-Protocol-Version", "2025-11-25"), "Mcp-Protocol-Version header does not match"},
		{"no method", "tools/list", ``, headers(), "Mcp-Method header is missing"},
		{"another method", "tools/list", ``, headers("Mcp-Method", "tools/call"), "Mcp-Method header does not match"},
		{"another case", "tools/list", ``, headers("Mcp-Method", "Tools/List"), "Mcp-Method header does not match"},
		{"a name", "tools/call", `,"name":"a"`, headers("Mcp-Method", "tools/call", "Mcp-Name", "a"), ""},
		{"a URI", "resources/read", `,"uri":"file:///a"`, headers("Mcp-Method", "resources/read", "Mcp-Name", "file:///a"), ""},
		{"no name", "prompts/get", `,"name":"a"`, headers("Mcp-Method", "prompts/get"), "Mcp-Name header is missing"},
		{"another name", "tools/call", `,"name":"42"`, headers("Mcp-Method", "tools/call", "Mcp-Name", "42.0"), "Mcp-Name header does not match"},
		{"a name for nothing", "tools/call", ``, headers("Mcp-Method", "tools/call", "Mcp-Name", "a"), "Mcp-Name header does not match"},
		{"nothing named", "tools/call", ``, headers("Mcp-Method", "tools/call"), ""},
		{"encoded", "tools/call", `,"name":"wü"`, headers("Mcp-Method", "tools/call", "Mcp-Name", base64Of("wü")), ""},
		{"encoded badly", "tools/call", `,"name":"wü"`, headers("Mcp-Method", "tools/call", "Mcp-Name", "=?base64?!!?="), "characters"},
		{"not encoded", "tools/call", `,"name":"wü"`, headers("Mcp-Method", "tools/call", "Mcp-Name", "wü"), "characters"},
		{"almost encoded", "tools/call", `,"name":"=?base64?="`, headers("Mcp-Method", "tools/call", "Mcp-Name", "=?base64?="), ""},
		{"a task without a name", "tasks/get", `,"taskId":"t"`, headers("Mcp-Method", "tasks/get"), ""},
		{"another task", "tasks/get", `,"taskId":"t"`, headers("Mcp-Method", "tasks/get", "Mcp-Name", "u"), "Mcp-Name header does not match"},
		{"twice", "tools/list", ``, http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list", "tools/list"}}, "more than once"},
	} {
		e := NewChecker(nil).Fault(tc.h, modernMessage(t, tc.method, tc.rest))
		switch {
		case tc.fault == "" && e != nil:
			t.Errorf("%s: %v", tc.name, e)
		case tc.fault != "" && (e == nil || e.Code != mcp.CodeHeaderMismatch || !strings.Contains(e.Message, tc.fault)):
			t.Errorf("%s: %v, want %q", tc.name, e, tc.fault)
		}
	}
}

func TestABodyWithoutItsVersionIsInvalid(t *testing.T) {
	msg, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
	if e := NewChecker(nil).Fault(headers("Mcp-Method", "tools/list"), &msg); e == nil || e.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a request without its version: %v", e)
	}
	msg, _ = jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/x"}`))
	if e := NewChecker(nil).Fault(http.Header{}, &msg); e != nil {
		t.Errorf("a notification, for which no headers are defined: %v", e)
	}
}

func TestArgumentsInHeadersMustBeThoseOfTheBody_B19_B24(t *testing.T) {
	m := NewChecker(nil)
	if !m.Blind() {
		t.Error("a mirror that was shown nothing is not blind")
	}
	m.Learn([]byte(`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"n"}}}}}}]}`))
	if m.Blind() {
		t.Error("a mirror that was shown a list is blind")
	}
	for _, tc := range []struct {
		name, args string
		pairs      []string
		fault      bool
	}{
		{"both", `{"region":"eu","o":{"n":42}}`, []string{"Mcp-Param-Region", "eu", "Mcp-Param-N", "42"}, false},
		{"numerically equal", `{"o":{"n":42.0}}`, []string{"Mcp-Param-N", "4.2e1"}, false},
		{"text is no number", `{"region":"42"}`, []string{"Mcp-Param-Region", "42.0"}, true},
		{"encoded", `{"region":"zürich"}`, []string{"Mcp-Param-Region", "=?base64?esO8cmljaA==?="}, false},
		{"neither", `{}`, nil, false},
		{"null", `{"region":null}`, nil, false},
		{"left out", `{"region":"eu"}`, nil, true},
		{"another", `{"region":"eu"}`, []string{"Mcp-Param-Region", "us"}, true},
		{"for nothing", `{}`, []string{"Mcp-Param-Region", "eu"}, true},
		{"unknown to the tool", `{}`, []string{"Mcp-Param-Other", "x"}, false},
	} {
		h := headers(append(tc.pairs, "Mcp-Method", "tools/call", "Mcp-Name", "t")...)
		if e := m.Fault(h, modernMessage(t, "tools/call", `,"name":"t","arguments":`+tc.args)); (e != nil) != tc.fault {
			t.Errorf("%s: %v", tc.name, e)
		}
	}
}

func FuzzHeaderValues(f *testing.F) {
	f.Add("=?base64?esO8?=")
	f.Add("=?base64?=")
	f.Add(" plain\t")
	f.Add("\xed\xa0\x80 is half a character, \xf8 none")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = decodeValue(text, false)
		if got, ok := decodeValue(string(AppendValue(nil, text)), false); !ok || got != rawjson.Readable(text) {
			t.Errorf("%q comes back as %q, %v", text, got, ok)
		}
	})
}

// TestAllWhoAskOneServerKnowTheSameOfItsTools: one who sends requests learns for one who
// judges others'.
func TestAllWhoAskOneServerKnowTheSameOfItsTools(t *testing.T) {
	tools := new(Tools)
	tools.Learn("", []byte(`{"tools":[`+goodTool+`]}`))
	msg := modernMessage(t, mcp.MethodToolsCall, `,"name":"good","arguments":{"r":"eu"}`)
	h := headers("Mcp-Method", "tools/call", "Mcp-Name", "good")
	if e := NewChecker(tools).Fault(h, msg); e == nil || !strings.Contains(e.Message, "Mcp-Param-R header is missing") {
		t.Errorf("%v", e)
	}
	if e := NewChecker(nil).Fault(h, msg); e != nil {
		t.Errorf("a store of another server: %v", e)
	}
}
