package translate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// P-6: what the revision can express passes byte for byte, without a copy.
func TestExpressibleResultsPassUntouched(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.SampledFrom(mcp.Legacy[:]).Draw(rt, "version")
		g := gen{rt, v}
		method := g.method()
		in := []byte(g.result(method))
		got, err := Rules{Version: v}.Result(method, in)
		if err != nil {
			rt.Fatalf("%s: %v", in, err)
		}
		if string(got) != string(in) {
			rt.Fatalf("%s %s\n in %s\ngot %s", v, method, in, got)
		}
		if &got[0] != &in[0] {
			rt.Fatalf("was copied: %s", in)
		}
	})
}

// P-1, P-4, P-6: whatever a modern server sends arrives as a valid result of
// the negotiated revision, without anything modern, and stable under a second
// pass; what no rule names keeps its bytes.
func TestModernResultsComeDown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rules := Rules{
			Version:       rapid.SampledFrom(mcp.Legacy[:]).Draw(rt, "version"),
			Profile:       rapid.SampledFrom([]Profile{Strict, Minimal}).Draw(rt, "profile"),
			DropNonObject: rapid.Bool().Draw(rt, "drop"),
		}
		g := gen{rt, mcp.V20260728}
		method := g.method()
		in := []byte(g.result(method))
		keep := string(in)
		got, err := rules.Result(method, in)
		if err != nil {
			rt.Fatalf("%s: %v", in, err)
		}
		if string(in) != keep {
			rt.Fatal("the argument was changed")
		}
		if err := rawjson.Validate(got); err != nil {
			rt.Fatalf("%v\n in %s\ngot %s", err, in, got)
		}
		leaks(rt, got)
		conforms(rt, rules.Version, resultTypes[method], got)
		if again, err := rules.Result(method, got); err != nil || &again[0] != &got[0] {
			rt.Fatalf("not stable: %v\n in %s\ngot %s\nand %s", err, in, got, again)
		}
		if vendor := rawjson.Get(in, "vendor"); string(vendor) != string(rawjson.Get(got, "vendor")) {
			rt.Fatalf("vendor member changed: %s became %s", in, got)
		}
	})
}

// leaks fails when a message for a legacy client carries modern members (P-4).
func leaks(t tester, message []byte) {
	t.Helper()
	for _, name := range []string{"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"} {
		if rawjson.Has(message, name) {
			t.Errorf("%s leaks: %s", name, message)
		}
	}
	for key := range rawjson.Members(rawjson.Get(message, "_meta")) {
		if ownedKey(key) {
			t.Errorf("%s leaks: %s", key, message)
		}
	}
}

// P-5, B-4, B-8: nothing of the legacy session goes up, and everything that is
// not the bridge's keeps its bytes.
func TestParamsGoUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := gen{rt, mcp.V20251125}
		method := g.method()
		meta := `"_meta":` + g.with(nil, `"traceparent":`+g.scalar(), `"progressToken":`+g.pick("0", `"x"`), `"io.modelcontextprotocol/logLevel":"debug"`,
			`"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}`, `"io.modelcontextprotocol/protocolVersion":"2025-06-18"`, `"io.modelcontextprotocol/clientInfo":{}`, `"io.modelcontextprotocol\u002fserverInfo":{}`, `"acme":`+g.value(1))
		in := []byte(g.with(nil, `"name":"n"`, `"arguments":`+g.value(3), `"uri":"a:b"`, `"cursor":`+g.pick(`""`, `null`), meta,
			`"task":{"ttl":1}`, `"requestState":"smuggled"`, `"inputResponses":{"a":1}`))
		env := Envelope{Method: method, Capabilities: []byte(`{"roots":{}}`), ClientInfo: []byte(`{"name":"c"}`)}
		if g.maybe() {
			env.ProgressToken = []byte(`"p-1"`)
		}
		if g.maybe() {
			env.RequestState = []byte(`"state\ud800"`)
		}
		got := Params(nil, in, &env)
		if err := rawjson.Validate(got); err != nil {
			rt.Fatalf("%v\n in %s\ngot %s", err, in, got)
		}
		if rawjson.Has(got, "task") {
			rt.Fatalf("P-5: task leaks: %s", got)
		}
		if mcp.MayRequireInput(method) && (string(rawjson.Get(got, "requestState")) != string(env.RequestState) || rawjson.Has(got, "inputResponses")) {
			rt.Fatalf("B-7: %s", got)
		}
		checkMeta(rt, in, got, &env)
		for name, value := range rawjson.Members(in) {
			switch string(name) {
			case "_meta", "task", "requestState", "inputResponses":
			case "cursor":
				if string(value) == "null" {
					continue
				}
				fallthrough
			default:
				if string(rawjson.Get(got, string(name))) != string(value) {
					rt.Fatalf("B-8: %s changed\n in %s\ngot %s", name, in, got)
				}
			}
		}
	})
}

// checkMeta compares a rebuilt _meta with the client's and the envelope.
func checkMeta(rt *rapid.T, in, got []byte, env *Envelope) {
	meta := rawjson.Get(got, "_meta")
	if string(rawjson.Get(meta, "progressToken")) != string(env.ProgressToken) {
		rt.Fatalf("B-5: %s", got)
	}
	if string(rawjson.Get(meta, mcp.MetaClientCapabilities)) != string(env.Capabilities) ||
		string(rawjson.Get(meta, mcp.MetaProtocolVersion)) != `"2026-07-28"` || rawjson.Has(meta, mcp.MetaLogLevel) {
		rt.Fatalf("A-21, A.5, B-6: %s", got)
	}
	for _, key := range []string{"traceparent", "acme"} {
		if string(rawjson.Get(meta, key)) != string(rawjson.Get(rawjson.Get(in, "_meta"), key)) {
			rt.Fatalf("B-4: %s of %s became %s", key, in, got)
		}
	}
}

// D-I2: the params of every round differ in the bridge's members only.
func TestParamsOfAllRoundsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := gen{rt, mcp.V20251125}
		in := []byte(g.with([]string{`"name":"n"`}, `"arguments":`+g.value(2), `"_meta":{"progressToken":1}`))
		strip := func(params []byte) string {
			return string(rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta"}, rawjson.Edit{Name: "requestState"}, rawjson.Edit{Name: "inputResponses"}))
		}
		first := Params(nil, in, &Envelope{Method: mcp.MethodToolsCall, ProgressToken: []byte(`"a"`)})
		later := Params(nil, in, &Envelope{Method: mcp.MethodToolsCall, RequestState: []byte(`""`), InputResponses: []byte(`{}`)})
		if strip(first) != strip(later) {
			rt.Fatalf("%s and %s", first, later)
		}
	})
}

// C.5: whatever a user picks of a multi-select comes back as that array.
func TestMultiSelectRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := gen{rt, mcp.V20260728}
		values := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b\"", "ü", "d", ""}), 1, 5, rapid.ID).Draw(rt, "values")
		var options, picked []string
		content := `{"other":1`
		for i, v := range values {
			quoted := string(rawjson.AppendQuote(nil, v))
			options = append(options, quoted)
			on := g.maybe()
			if on {
				picked = append(picked, quoted)
			}
			content += `,"x__` + string(rune('1'+i)) + `":` + map[bool]string{true: "true", false: "false"}[on]
		}
		params := []byte(form(`"x":{"type":"array","items":{"type":"string","enum":`+joined(options)+`}}`, ""))
		rules := Rules{Version: mcp.V20250618}
		asked, err := rules.InputRequest(mcp.MethodElicitationCreate, params, nil)
		if err != nil || rawjson.Validate(asked) != nil {
			rt.Fatalf("%s %v", asked, err)
		}
		conforms(rt, mcp.V20250618, "ElicitRequest", request(mcp.MethodElicitationCreate, asked))
		got, err := rules.InputResponse(mcp.MethodElicitationCreate, params, []byte(`{"action":"accept","content":`+content+`}}`))
		want := `{"action":"accept","content":{"other":1,"x":` + joined(picked) + `}}`
		if err != nil || string(got) != want {
			rt.Fatalf("got %s %v, want %s", got, err, want)
		}
	})
}

func joined(parts []string) string {
	s := "["
	for i, p := range parts {
		if i > 0 {
			s += ","
		}
		s += p
	}
	return s + "]"
}
