package translate

import (
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// The targets feed any text: what rawjson refuses must not panic, and what it
// accepts must come out as JSON that rawjson accepts.

var fuzzMethods = []string{
	mcp.MethodToolsCall, mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodPromptsGet, mcp.MethodResourcesList,
	mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead, mcp.MethodComplete, "acme/run",
}

func fuzzRules(n uint8) Rules {
	return Rules{
		Version:           mcp.Legacy[n%4],
		Profile:           Profile(n >> 2 & 1),
		DropNonObject:     n>>3&1 == 1,
		CancelMultiSelect: n>>4&1 == 1,
		HostTasks:         n>>5&1 == 1,
	}
}

func seed(f *testing.F, texts ...string) {
	for i, text := range texts {
		f.Add(uint8(i), uint8(i), []byte(text))
		f.Add(uint8(i+4), uint8(i+1), []byte(text))
	}
}

func FuzzResult(f *testing.F) {
	seed(f, `{"resultType":"complete","content":[{"type":"text","text":"a\ud800"},{"type":"audio"},7],"structuredContent":[1]}`,
		`{"tools":[{"name":"t","title":"T","inputSchema":{"x-mcp-header":1},"outputSchema":{"$ref":"#/a","$schema":"x"}},2]}`,
		`{"prompts":[{"name":"p","arguments":[{"title":""}]}]}`, `{"messages":[{"content":{"type":"resource_link"}}]}`,
		`{ "resources" : [ { "name":"","uri":"","_meta":{ } } ] , "ttlMs" : 1 }`, `{"contents":[{"_meta":1}]}`, `{`, `[`, `{"content":[{"`)
	f.Fuzz(func(t *testing.T, n, m uint8, in []byte) {
		rules, method := fuzzRules(n), fuzzMethods[int(m)%len(fuzzMethods)]
		got, err := rules.Result(method, in)
		if rawjson.Validate(in) != nil || err != nil {
			return
		}
		if err := rawjson.Validate(got); err != nil {
			t.Fatalf("%v\n in %s\ngot %s", err, in, got)
		}
		leaks(t, got)
		again, err := rules.Result(method, got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("not stable: %v\n in %s\ngot %s\nand %s", err, in, got, again)
		}
		rules.WrapOutput = true
		if got, err = rules.Result(method, in); err == nil && rawjson.Validate(got) != nil {
			t.Fatalf("wrapped: in %s\ngot %s", in, got)
		}
		for tool := range rawjson.Elements(rawjson.Get(in, "tools")) {
			_ = rules.Wraps(tool)
		}
	})
}

func FuzzParams(f *testing.F) {
	seed(f, `{"name":"a","_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"x"},"task":{}}`, `{"cursor":null}`, ``, `{"_meta":1}`, `{"requestState":1,"a":{`)
	f.Fuzz(func(t *testing.T, n, m uint8, in []byte) {
		env := Envelope{Method: fuzzMethods[int(m)%len(fuzzMethods)]}
		if n&1 == 1 {
			env.RequestState, env.InputResponses = []byte(`"s"`), []byte(`{}`)
		}
		if n&2 == 2 {
			env.ProgressToken = []byte(`7`)
		}
		got := Params(nil, in, &env)
		if rawjson.Validate(in) != nil {
			return
		}
		if err := rawjson.Validate(got); err != nil {
			t.Fatalf("%v\n in %s\ngot %s", err, in, got)
		}
		if twice := Params(nil, got, &env); !rawjson.Equal(twice, got) {
			t.Fatalf("not stable\n in %s\ngot %s\nand %s", in, got, twice)
		}
	})
}

func FuzzInput(f *testing.F) {
	seed(f, form(`"c":{"type":"array","items":{"anyOf":[{"const":"r"}]}},"d":{"type":"string","oneOf":[{"const":"x","title":"y"}]}`, `,"required":["c"]`),
		`{"messages":[{"role":"user","content":[{"type":"text"},{"type":"tool_result","content":[1],"structuredContent":1}]}],"tools":[{}]}`,
		`{"mode":"url","message":"","url":""}`, `{"action":"accept","content":{"c__1":true,"x":null}}`, `{"roots":[]}`)
	methods := []string{mcp.MethodElicitationCreate, mcp.MethodSamplingCreateMessage, mcp.MethodRootsList}
	f.Fuzz(func(t *testing.T, n, m uint8, in []byte) {
		rules, method := fuzzRules(n), methods[m%3]
		asked, err := rules.InputRequest(method, in, []byte(`{"sampling":{"tools":{}}}`))
		answer, answerErr := rules.InputResponse(method, in, in)
		if rawjson.Validate(in) != nil {
			return
		}
		if err == nil && asked != nil && rawjson.Validate(asked) != nil {
			t.Fatalf("in %s\ngot %s", in, asked)
		}
		if answerErr == nil && rawjson.Validate(answer) != nil {
			t.Fatalf("in %s\ngot %s", in, answer)
		}
	})
}

func FuzzOthers(f *testing.F) {
	seed(f, `{"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`,
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"message":""}`,
		`{"total":3,"x":[1],"progress":1,"progressToken":"a","message":"m"}`, `{"resultType":"task","task":{"taskId":"a","resultType":1}}`,
		`{"inputRequests":{"a":{"method":"roots/list"}},"ttl":3}`, `{"supported":["x"],"requiredCapabilities":{"elicitation":{}},"uri":""}`)
	f.Fuzz(func(t *testing.T, n, m uint8, in []byte) {
		rules, method := fuzzRules(n), fuzzMethods[int(m)%len(fuzzMethods)]
		initialize, initErr := InitializeResult(rules.Version, in, InitOptions{Profile: rules.Profile, Listen: n&1 == 1, HostTasks: true})
		note, _ := rules.Notification(mcp.NotificationProgress, in)
		result, out := rules.Error(method, in, &jsonrpc.Error{Code: -32000 - int(m), Message: "m", Data: in})
		outputs := [][]byte{initialize, note, ClientCapabilities(rules.Version, in, true), WithTasks(in), result}
		if out != nil {
			outputs = append(outputs, out.Data)
		}
		if rawjson.Validate(in) != nil {
			return
		}
		if p := rules.Progress(in); rawjson.KindOf(in) == rawjson.Object {
			if got := p.AppendTo(nil, p.Token, p.Value, p.Total); string(got) != string(note) {
				t.Fatalf("progress %s\n became %s\n    not %s", in, got, note)
			}
		}
		if (result == nil) == (out == nil) {
			t.Fatal("Error must return exactly one")
		}
		for i, got := range outputs {
			if got == nil && (i > 0 || initErr != nil) {
				continue
			}
			if err := rawjson.Validate(got); err != nil {
				t.Fatalf("%d: %v\n in %s\ngot %s", i, err, in, got)
			}
		}
	})
}
