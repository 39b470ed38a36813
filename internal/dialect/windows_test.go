package dialect_test

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/mcp"
)

const (
	form     = `{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	roots    = `{"method":"roots/list"}`
	sampling = `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"ok?"}}],"maxTokens":5}}`

	sayHello = `{"name":"hello","arguments":{}}`
	hello    = `{"content":[{"type":"text","text":"Hello Ada"}]}`

	ada  = `{"action":"accept","content":{"name":"Ada"}}`
	root = `{"roots":[{"uri":"file:///w"}]}`
	yes  = `{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}`
)

// TestI4Windows plays, for each window of the drafts, one call in which the
// server asks once and is then content, through the whole bridge.
func TestI4Windows(t *testing.T) {
	for _, tt := range []struct {
		window string
		opt    dialect.Options
		method string
		params string
		rounds []string
		asked  string // of the client
		up     string // inputResponses of the last round
		state  string // requestState of the last round
		down   string // what the client gets
	}{
		{
			"W1 no marker, wrapped answers", dialect.Options{Mode: dialect.On, WrapAnswers: true}, mcp.MethodToolsCall, sayHello,
			[]string{`{"inputRequests":{"a":` + form + `,"b":` + sampling + `},"requestState":"s"}`, hello},
			"elicitation/create sampling/createMessage",
			`{"a":{"result":` + ada + `},"b":{"result":` + yes + `}}`, `"s"`, hello,
		}, {
			"W1 no marker, state alone", dialect.Options{}, mcp.MethodToolsCall, sayHello,
			[]string{`{"requestState":"\ud800"}`, hello}, "", "", `"\ud800"`, hello,
		}, {
			"W2 bare answers, roots", dialect.Options{}, mcp.MethodPromptsGet, `{"name":"p"}`,
			[]string{`{"inputRequests":{"r":` + roots + `}}`, `{"messages":[]}`},
			"roots/list", `{"r":` + root + `}`, "", `{"messages":[]}`,
		}, {
			"W2 status", dialect.Options{}, mcp.MethodResourcesRead, `{"uri":"file:///a"}`,
			[]string{`{"status":"incomplete","inputRequests":{"a":` + form + `}}`, `{"contents":[]}`},
			"elicitation/create", `{"a":` + ada + `}`, "", `{"contents":[]}`,
		}, {
			"W2 lists", dialect.Options{}, mcp.MethodToolsList, `{}`,
			[]string{`{"status":"incomplete","inputRequests":{"a":` + form + `},"requestState":"s"}`, `{"tools":[]}`},
			"elicitation/create", `{"a":` + ada + `}`, `"s"`, `{"tools":[]}`,
		}, {
			"W3 result_type", dialect.Options{}, mcp.MethodToolsCall, sayHello,
			[]string{`{"result_type":"incomplete","inputRequests":{"a":` + form + `},"requestState":""}`,
				`{"result_type":"complete","content":[{"type":"text","text":"Hello Ada"}]}`},
			"elicitation/create", `{"a":` + ada + `}`, `""`, hello,
		}, {
			"W4 resultType incomplete", dialect.Options{}, mcp.MethodToolsCall, sayHello,
			[]string{`{"resultType":"incomplete","inputRequests":{"a":` + form + `}}`,
				`{"resultType":"complete","content":[{"type":"text","text":"Hello Ada"}]}`},
			"elicitation/create", `{"a":` + ada + `}`, "", hello,
		}, {
			"W5 input_required", dialect.Options{}, mcp.MethodToolsCall, sayHello,
			[]string{`{"resultType":"input_required","inputRequests":{"a":` + form + `},"requestState":"s"}`, hello},
			"elicitation/create", `{"a":` + ada + `}`, `"s"`, hello,
		},
	} {
		t.Run(tt.window, func(t *testing.T) {
			t.Parallel()
			var steps []reply
			for _, round := range tt.rounds {
				steps = append(steps, result(round))
			}
			srv := newServer(t, script{mcp.MethodDiscover: {early}, tt.method: steps})
			x := connect(t, srv, tt.opt).call(tt.method, tt.params, agree)
			want(t, "asked", x.names(), tt.asked)
			want(t, "answer", string(x.response.Result), tt.down)
			rounds := srv.all(tt.method)
			if len(rounds) != len(tt.rounds) {
				t.Fatalf("%d rounds, want %d", len(rounds), len(tt.rounds))
			}
			last := rounds[len(rounds)-1]
			want(t, "inputResponses", last.member("inputResponses"), tt.up)
			want(t, "requestState", last.member("requestState"), tt.state)
			for _, s := range rounds {
				want(t, "I-8 header", s.header.Get(mcp.HeaderProtocolVersion), "2026-06-30")
				want(t, "I-8 _meta", s.member("_meta", mcp.MetaProtocolVersion), `"2026-06-30"`)
			}
		})
	}
}

// TestI6WrappingEndsWithTheDraft: a server that was brought up to date gets bare
// answers, whatever the configuration still says.
func TestI6WrappingEndsWithTheDraft(t *testing.T) {
	srv := newServer(t, script{mcp.MethodDiscover: {result(final)}, mcp.MethodToolsCall: {
		result(`{"resultType":"input_required","inputRequests":{"a":` + form + `}}`), result(hello)}})
	connect(t, srv, dialect.Options{WrapAnswers: true}).call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "inputResponses", srv.all(mcp.MethodToolsCall)[1].member("inputResponses"), `{"a":`+ada+`}`)
}

// TestI3ShapesAreNoEvidence: results of a final server that only look like a
// draft's reach the client as they are.
func TestI3ShapesAreNoEvidence(t *testing.T) {
	for name, body := range map[string]string{
		"a status":           `"content":[],"status":"incomplete"`,
		"a nested question":  `"content":[],"structuredContent":{"inputRequests":{"a":` + form + `},"requestState":"s"}`,
		"a ttl":              `"content":[],"ttl":5,"task":{"taskId":"t","status":"working"}`,
		"a status, no words": `"content":[],"structuredContent":{"status":"incomplete","result_type":"incomplete"}`,
	} {
		for _, mode := range []dialect.Mode{dialect.Auto, dialect.Off, dialect.On} {
			srv := newServer(t, script{mcp.MethodDiscover: {result(final)},
				mcp.MethodToolsCall: {result(`{"resultType":"complete",` + body + `}`), result(`{` + body + `}`)}})
			c := connect(t, srv, dialect.Options{Mode: mode})
			for range 2 { // with its marker and, which means the same, without
				x := c.call(mcp.MethodToolsCall, sayHello, agree)
				got := string(x.response.Result)
				if strings.Contains(body, "structuredContent") { // its text is added (B-36)
					if !strings.Contains(got, body[strings.Index(body, `"structuredContent"`):]) {
						t.Errorf("%s, %s: %s", name, mode, got)
					}
					continue
				}
				want(t, name+", "+string(mode), got, `{`+body+`}`)
			}
			want(t, name, srv.methods(), "tools/call tools/call")
		}
	}
}

func TestI5TheLogHintsAtTheSetting(t *testing.T) {
	srv := newServer(t, script{mcp.MethodDiscover: {result(final)},
		mcp.MethodToolsCall: {result(`{"resultType":"incomplete","inputRequests":{"a":` + form + `}}`)}})
	c := connect(t, srv, dialect.Options{})
	x := c.call(mcp.MethodToolsCall, sayHello, agree)
	if x.response.Error == nil || x.response.Error.Code != -32603 || len(x.asked) != 0 {
		t.Fatalf("%+v", x.response)
	}
	if log := c.log.String(); !strings.Contains(log, `"rule":"B-27"`) || !strings.Contains(log, "draft: on") {
		t.Fatalf("log: %s", log)
	}
}
