package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/mcp"
)

// mark stands wherever the other hop must not hear of it.
const mark = "m4rk-of-the-other-hop"

// everyVersion checks a property with open sessions of all revisions.
func everyVersion(t *testing.T, property func(*rapid.T, *world)) {
	t.Parallel()
	worlds := map[mcp.Version]*world{}
	for _, version := range mcp.Legacy {
		worlds[version] = newWorld(t, version, nil)
		worlds[version].open()
	}
	rapid.Check(t, func(rt *rapid.T) {
		property(rt, worlds[rapid.SampledFrom(mcp.Legacy[:]).Draw(rt, "version")])
	})
}

// exact posts a request and returns the text of its JSON response.
func (w *world) exact(rt *rapid.T, c *client, body string) string {
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		rt.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {c.session}}
	res, err := c.http.Do(req)
	if err != nil {
		rt.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		rt.Fatalf("HTTP %d %s: %v", res.StatusCode, text, err)
	}
	return string(text)
}

var anyID = rapid.OneOf(number.Filter(func(n string) bool { return !strings.ContainsAny(n, ".eE") }), word)

// P-6, B-29: a result that no rule touches comes down byte for byte, under the
// client's id byte for byte.
func TestUntouchedResultsPassByteForByte_P6_B29(t *testing.T) {
	everyVersion(t, func(rt *rapid.T, w *world) {
		given := map[string][]string{
			"tools/call":          {`"content":[` + object(rt, 1, []string{`"type":"text"`, `"text":` + word.Draw(rt, "text")}) + `]`},
			"prompts/get":         {`"messages":[` + object(rt, 1, []string{`"role":"user"`, `"content":` + object(rt, 1, []string{`"type":"text"`, `"text":""`})}) + `]`},
			"resources/read":      {`"contents":[` + object(rt, 1, []string{`"uri":"u:1"`, `"text":` + word.Draw(rt, "text")}) + `]`},
			"resources/list":      {`"resources":[` + object(rt, 1, []string{`"uri":"u:1"`, `"name":"n"`}) + `]`},
			"tools/list":          {`"tools":[` + object(rt, 1, []string{`"name":"t"`, `"inputSchema":` + object(rt, 1, []string{`"type":"object"`})}) + `]`},
			"completion/complete": {`"completion":` + object(rt, 1, []string{`"values":["a"]`})},
			"com.example/do":      nil,
		}
		method := rapid.SampledFrom(slices.Sorted(maps.Keys(given))).Draw(rt, "method")
		text := object(rt, 2, given[method])
		w.server.on(method, result(text))
		id := anyID.Draw(rt, "id")
		got := w.exact(rt, w.client, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{"uri":"u:1","name":"t"}}`)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":` + text + `}`; got != want && !(text == "{}" && same(got, want)) {
			rt.Fatalf("P-6:\n got %s\nwant %s", got, want)
		}
	})
}

// P-6, B-8: what a client asks for goes up member by member as it stood, in its
// order; only _meta and what belongs to the bridge is touched.
func TestUntouchedParamsPassByteForByte_P6_B8(t *testing.T) {
	everyVersion(t, func(rt *rapid.T, w *world) {
		method := rapid.SampledFrom([]string{"tools/call", "prompts/get", "resources/read", "com.example/do"}).Draw(rt, "method")
		w.server.on(method, result(`{"content":[],"messages":[],"contents":[]}`))
		params := object(rt, 2, append(some(rt, "meta", `"_meta":`+object(rt, 1, nil)), `"uri":"u:1"`, `"name":"t"`))
		w.exact(rt, w.client, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		up := w.server.last(method).Params
		names, sent := members(rt, params)
		upNames, arrived := members(rt, string(up))
		if upNames = without(upNames, "_meta"); !slices.Equal(without(names, "_meta"), upNames) {
			rt.Fatalf("B-8: %s went up as %s", params, up)
		}
		for _, name := range upNames {
			if sent[name] != arrived[name] {
				rt.Fatalf("B-8: %s of %s went up as %s", name, params, arrived[name])
			}
		}
		_, own := members(rt, orObject(sent["_meta"]))
		_, meta := members(rt, orObject(arrived["_meta"]))
		for name, value := range own { // B-4
			if meta[name] != value {
				rt.Fatalf("B-4: _meta %s of %s went up as %s", name, params, up)
			}
		}
	})
}

func orObject(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// members reads an object's members with their order and spelling.
func members(rt *rapid.T, text string) (names []string, values map[string]string) {
	values = map[string]string{}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if _, err := d.Token(); err != nil {
		rt.Fatalf("%v: %s", err, text)
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			rt.Fatalf("%v: %s", err, text)
		}
		names = append(names, name.(string))
		values[name.(string)] = string(value)
	}
	return names, values
}

// modernOf are members that only the modern era has, each with the mark.
func modernOf(rt *rapid.T) []string {
	meta := some(rt, "meta", `"`+metaPrefix+`serverInfo":{"name":"`+mark+`"}`, `"io\u002emodelcontextprotocol/subscriptionId":"`+mark+`"`,
		`"`+metaPrefix+`related-task":{"taskId":"`+mark+`"}`, `"`+metaPrefix+`logLevel":"`+mark+`"`)
	return append(some(rt, "modern", `"resultType":"complete"`, `"requestState":"`+mark+`"`, `"inputRequests":{"`+mark+`":{"method":"roots/list"}}`,
		`"ttlMs":0`, `"cacheScope":"`+mark+`"`), `"_meta":`+object(rt, 1, meta))
}

// P-4: whatever a modern server says, in results, errors, notifications of a
// call and questions, the client hears nothing of the modern era. The judgement
// of every message is in parse; the mark finds what that does not know.
func TestNothingModernLeaksDown_P4(t *testing.T) {
	everyVersion(t, func(rt *rapid.T, w *world) {
		payloads := map[string]string{
			"tools/call": `"content":[]`, "prompts/get": `"messages":[]`, "resources/read": `"contents":[]`, "tools/list": `"tools":[]`,
			"resources/list": `"resources":[]`, "com.example/do": `"xx":1`,
		}
		method := rapid.SampledFrom(slices.Sorted(maps.Keys(payloads))).Draw(rt, "method")
		outcome := object(rt, 1, append(modernOf(rt), payloads[method]))
		code := rapid.SampledFrom([]int{0, 0, 0, -32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32042, -32077, -32001, -32002, 7}).Draw(rt, "code")
		interim := rapid.SampledFrom([]string{"", "notifications/x", "notifications/progress", "notifications/message", "notifications/tasks", "notifications/cancelled", "notifications/subscriptions/acknowledged"}).Draw(rt, "interim")
		note := object(rt, 1, []string{`"level":"error"`, `"progress":1`, `"_meta":{"` + metaPrefix + `subscriptionId":"` + mark + `"}`})
		w.server.on(method, func(x *incoming) {
			if interim != "" {
				x.notify(interim, strings.Replace(note, `"progress"`, `"progressToken":`+orNull(x.token())+`,"progress"`, 1))
			}
			if code != 0 {
				x.fail(code, "m", `{"supported":["`+modern+`"],"requested":"x"}`)
				return
			}
			x.result(outcome)
		})
		x := w.client.call(method, `{"uri":"u:1","name":"t","_meta":{"progressToken":1}}`)
		for _, m := range append(x.before, x.response) {
			if strings.Contains(m.Text, mark) {
				rt.Fatalf("P-4: %s", m.Text)
			}
			if m.Method == "notifications/tasks" || m.Method == "notifications/cancelled" || m.Method == "notifications/subscriptions/acknowledged" {
				rt.Fatalf("C-17, C-19, C-23: %s", m.Text)
			}
		}
	})
}

// P-5: whatever a legacy client sends, nothing of its session goes up: members
// that are the bridge's to set, notifications, answers to nothing, headers.
func TestNothingLegacyLeaksUp_P5(t *testing.T) {
	everyVersion(t, func(rt *rapid.T, w *world) {
		method := rapid.SampledFrom([]string{"tools/call", "prompts/get", "resources/read"}).Draw(rt, "method")
		w.server.on(method, result(`{"content":[],"messages":[],"contents":[]}`))
		meta := some(rt, "meta", `"progressToken":"`+mark+`"`, `"`+metaPrefix+`protocolVersion":"`+mark+`"`, `"`+metaPrefix+`clientInfo":{"name":"`+mark+`"}`,
			`"io\u002emodelcontextprotocol/clientCapabilities":{"`+mark+`":{}}`, `"`+metaPrefix+`logLevel":"`+mark+`"`, `"`+metaPrefix+`related-task":{"taskId":"`+mark+`"}`)
		params := object(rt, 1, append(some(rt, "legacy", `"task":{"ttl":1,"x":"`+mark+`"}`, `"inputResponses":{"`+mark+`":{}}`, `"requestSt\u0061te":"`+mark+`"`),
			`"uri":"u:1"`, `"name":"t"`, `"_meta":`+object(rt, 1, meta)))
		before := w.server.count()
		stray := rapid.SliceOfN(rapid.SampledFrom([]string{
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"x":"` + mark + `"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"x":"` + mark + `"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + mark + `"}}`,
			`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"` + mark + `"}}`,
			`{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + mark + `"}}`,
			`{"jsonrpc":"2.0","id":"` + mark + `","result":{}}`,
			`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"` + mark + `"}}`,
		}), 0, 3).Draw(rt, "stray")
		for _, text := range stray {
			w.client.notify(text)
		}
		for _, local := range some(rt, "local", "ping", "tasks/list", "tasks/get", "resources/unsubscribe") {
			w.client.call(local, `{"uri":"`+mark+`","taskId":"`+mark+`"}`)
		}
		w.client.header = http.Header{"Last-Event-Id": {mark}, "Cookie": {mark}, "Mcp-Name": {mark}, "Mcp-Param-X": {mark}}
		w.client.call(method, params)
		w.client.header = nil
		seen := w.server.since(before)
		if len(seen) != 1 {
			rt.Fatalf("P-5: %d requests went up for one", len(seen))
		}
		if strings.Contains(string(seen[0].Body), mark) || strings.Contains(fmt.Sprint(seen[0].Header), mark) {
			rt.Fatalf("P-5: %v\n%s", seen[0].Header, seen[0].Body)
		}
	})
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// since returns what arrived after the first n requests, without listens.
func (s *server) since(n int) []*incoming {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seen[n:]), func(x *incoming) bool { return x.Method == "subscriptions/listen" })
}

var turns = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) turn {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{`"a"`, `"\u0062"`, `""`, `"é"`, `"\ud800"`, `"\""`, `"a b"`, `"\ud800x"`}), 1, 3, rapid.ID[string]).Draw(t, "keys")
	return turn{keys: keys, state: rapid.OneOf(rapid.Just(""), word).Draw(t, "state")}
}), 1, 4)
