package compat

import "strings"

var tools = group{"Lists of tools, prompts and resources", []feature{
	{name: "Tools: name, description, input schema", rules: "B.6, B-3, B-28, P-1", kinds: "YYYY", run: plainTool},
	{name: "Tool `title`", rules: "B.6", kinds: "NTYY", run: toolMember(`"title":"T"`,
		kept(`{"name":"t","inputSchema":{"type":"object"},"title":"T"}`),
		outcome{via("as `annotations.title`"), `{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T"}}`},
		left(bareTool))},
	{name: "Tool `annotations`", rules: "B.6", kinds: "NYYY", run: toolMember(`"annotations":{"readOnlyHint":true}`,
		kept(`{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`), left(bareTool))},
	{name: "Tool `icons`", rules: "B.6", kinds: "NNNY", run: toolMember(`"icons":[{"src":"https://example.com/i.png"}]`,
		kept(`{"name":"t","inputSchema":{"type":"object"},"icons":[{"src":"https://example.com/i.png"}]}`), left(bareTool))},
	{name: "Tool `_meta`", rules: "B.6", kinds: "NNYY", run: toolMember(`"_meta":{"a":1}`,
		kept(`{"name":"t","inputSchema":{"type":"object"},"_meta":{"a":1}}`), left(bareTool))},
	{name: "Vendor members of a tool", rules: "P-2", kinds: "YYYY", run: toolMember(`"x-vendor":1`,
		kept(`{"name":"t","inputSchema":{"type":"object"},"x-vendor":1}`))},
	{name: "Tool `execution`", rules: "B.6", kinds: "TTTT", run: toolMember(`"execution":{"taskSupport":"required"}`,
		outcome{via("left out: it is about tasks, which are hidden"), bareTool})},
	{name: "Output schema of an object", rules: "B.6", kinds: "NNYY", run: toolMember(`"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}`,
		kept(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`), left(bareTool))},
	{name: "Output schema of anything else", rules: "B-33, J-8, Q10", kinds: "NNTT", run: toolMember(
		`"outputSchema":{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}`,
		outcome{via("wrapped as `{\"result\": …}`"), `{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":` +
			`{"result":{"type":"array","items":{"$ref":"#/properties/result/$defs/n"},"$defs":{"n":{"type":"integer"}}}},"required":["result"]}}`},
		left(bareTool))},
	{name: "Keywords of JSON Schema 2020-12", rules: "B.6", kinds: "YYYY", run: toolSchema(
		`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","oneOf":[{"required":["a"]}],"$defs":{"d":{}},"if":{},"then":{}}`, "")},
	{name: "Boolean schemas of properties", rules: "B.6", kinds: "TTTT", run: toolSchema(
		`{"type":"object","properties":{"a":true,"b":false}}`, `{"type":"object","properties":{"a":{},"b":{"not":{}}}}`)},
	{name: "Parameters that travel as headers (`x-mcp-header`)", rules: "B-9, B-12, B-13, B-14, B-19, B-24, B-26", kinds: "TTTT", run: headerParams},
	{name: "Tools that break the rules for such parameters", rules: "B-20, B-21, B-23", kinds: "TTTT", run: illegalTool},
	{name: "A list with one bad entry", rules: "B-23, B.6", kinds: "TTTT", run: badEntry},
	{name: "Pages and cursors", rules: "B-32, P-7, B-8", kinds: "YYYY", run: pages},
	{name: "Prompts and their arguments", rules: "B.4", kinds: "YYYY", run: listOf("prompts/list", "prompts",
		`{"name":"p","description":"d","arguments":[{"name":"a","required":true}]}`, "")},
	{name: "Titles of prompts, arguments and resources", rules: "B.4", kinds: "NNYY", run: listOf("prompts/list", "prompts",
		`{"name":"p","title":"P","arguments":[{"name":"a","title":"A"}]}`, `{"name":"p","arguments":[{"name":"a"}]}`)},
	{name: "Icons of prompts and resources", rules: "B.4", kinds: "NNNY", run: listOf("resources/list", "resources",
		`{"uri":"u:1","name":"r","icons":[{"src":"https://example.com/i.png"}]}`, `{"uri":"u:1","name":"r"}`)},
	{name: "`_meta` and `lastModified` of resources", rules: "B.4, B.8", kinds: "NNYY", run: listOf("resources/list", "resources",
		`{"uri":"u:1","name":"r","annotations":{"priority":1,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"a":1}}`,
		`{"uri":"u:1","name":"r","annotations":{"priority":1}}`)},
	{name: "Resource templates", rules: "B.4", kinds: "YYYY", run: listOf("resources/templates/list", "resourceTemplates",
		`{"uriTemplate":"u:{x}","name":"r","mimeType":"text/plain"}`, "")},
	{name: "Freshness hints (`ttlMs`, `cacheScope`)", rules: "B-28, B-40, J-18", kinds: "TTTT", run: freshness},
}}

const bareTool = `{"name":"t","inputSchema":{"type":"object"}}`

// complete wraps members as a complete, cacheable result that goes stale at once.
func complete(members string) answer {
	return result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private",` + members +
		`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"2.0"}}}`)
}

// listed returns how the client sees a list of one entry.
func (w *world) listed(method, name, entry string) string {
	w.Helper()
	w.server.on(method, complete(`"`+name+`":[`+entry+`]`))
	x := w.client.call(method, "")
	list := member(x.response.Result, name)
	if !same(string(x.response.Result), `{"`+name+`":`+list+`}`) { // B-28: nothing else is left
		w.Errorf("B-28: %s", x.response.Result)
	}
	return strings.TrimSuffix(strings.TrimPrefix(list, "["), "]")
}

func plainTool(w *world) cell {
	tool := `{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}`
	return w.which("tool", w.listed("tools/list", "tools", tool), kept(tool))
}

func toolMember(extra string, outcomes ...outcome) func(*world) cell {
	return func(w *world) cell {
		tool := `{"name":"t","inputSchema":{"type":"object"},` + extra + `}`
		return w.which("tool", w.listed("tools/list", "tools", tool), outcomes...)
	}
}

// toolSchema lists a tool with an input schema; changed is empty when it stays.
func toolSchema(schema, changed string) func(*world) cell {
	return func(w *world) cell {
		got := member([]byte(w.listed("tools/list", "tools", `{"name":"t","inputSchema":`+schema+`}`)), "inputSchema")
		if changed == "" {
			return w.which("schema", got, kept(schema))
		}
		return w.which("schema", got, outcome{via("`true` as `{}`, `false` as `{\"not\": {}}`"), changed})
	}
}

func listOf(method, name, entry, without string) func(*world) cell {
	return func(w *world) cell {
		outcomes := []outcome{kept(entry)}
		if without != "" {
			outcomes = append(outcomes, left(without))
		}
		return w.which(name, w.listed(method, name, entry), outcomes...)
	}
}

const annotated = `{"type":"object","properties":{"where":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}},` +
	`"n":{"type":"integer","x-mcp-header":"N"},"on":{"type":"boolean","x-mcp-header":"On"},"gone":{"type":"string","x-mcp-header":"Gone"}}}`

func headerParams(w *world) cell {
	got := w.listed("tools/list", "tools", `{"name":"tööl","inputSchema":`+annotated+`}`)
	if strings.Contains(got, "x-mcp-header") {
		w.Errorf("B.6: the client is shown %s", got)
	}
	w.server.on("tools/call", result(`{"resultType":"complete","content":[]}`))
	w.client.header = map[string][]string{"Mcp-Param-City": {"spoofed"}, "Mcp-Name": {"spoofed"}, "Mcp-Method": {"spoofed"}} // B-26
	w.client.call("tools/call", `{"name":"tööl","arguments":{"where":{"city":"Zürich"},"n":42.0,"on":true,"gone":null}}`)
	h := w.server.last("tools/call").Header
	for name, want := range map[string]string{
		"Mcp-Name":       "=?base64?dMO2w7Zs?=", // B-15
		"Mcp-Param-City": "=?base64?WsO8cmljaA==?=",
		"Mcp-Param-N":    "42",
		"Mcp-Param-On":   "true",
	} {
		if h.Get(name) != want {
			w.Errorf("B-12, B-14, B-15: %s: %q, want %q", name, h.Get(name), want)
		}
	}
	if _, there := h["Mcp-Param-Gone"]; there {
		w.Error("B-13: a header for null")
	}
	return via("computed by the bridge from the arguments")
}

func illegalTool(w *world) cell {
	w.server.on("tools/list", complete(`"tools":[{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":`+
		`{"type":"string","x-mcp-header":"A"}}}}},{"name":"data","inputSchema":{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}}]`))
	x := w.client.call("tools/list", "")
	// A property of that name is no annotation (B-21).
	expect(w.T, "B-23", string(x.response.Result), `{"tools":[{"name":"data","inputSchema":{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}}]}`)
	refused := w.client.call("tools/call", `{"name":"bad","arguments":{}}`)
	if e := refused.response.Error; e == nil || e.Code != -32602 || len(w.server.requests("tools/call")) != 0 {
		w.Errorf("B-23: a call of it: %s", refused.response.Text)
	}
	if !strings.Contains(w.log.String(), `"tool":"bad"`) {
		w.Errorf("B-23: nothing in the log: %s", w.log)
	}
	return via("left out of the list and logged; calls are `-32602`")
}

func badEntry(w *world) cell {
	w.server.on("tools/list", complete(`"tools":[{"name":"no schema"},`+bareTool+`,{"name":"x","inputSchema":{"type":"string"}},7]`))
	x := w.client.call("tools/list", "")
	expect(w.T, "tools", string(x.response.Result), `{"tools":[`+bareTool+`]}`)
	if !strings.Contains(w.log.String(), `"no schema"`) {
		w.Errorf("B-23: nothing in the log: %s", w.log)
	}
	return via("the entry is left out and logged, the others stay")
}

func pages(w *world) cell {
	w.server.on("prompts/list", complete(`"prompts":[],"nextCursor":""`), complete(`"prompts":[],"nextCursor":"o\u0070aque=="`), complete(`"prompts":[]`))
	first := w.client.call("prompts/list", `{"cursor":null}`)
	expect(w.T, "B-32, P-7", member(first.response.Result, "nextCursor"), `""`)
	if got := member(w.server.last("prompts/list").Params, "cursor"); got != "" {
		w.Errorf("B-8: cursor null went up as %s", got)
	}
	w.client.call("prompts/list", `{"cursor":""}`)
	if got := member(w.server.last("prompts/list").Params, "cursor"); got != `""` {
		w.Errorf("P-7: the empty cursor went up as %q", got)
	}
	w.client.call("prompts/list", `{"cursor":"o\u0070aque=="}`)
	if got := member(w.server.last("prompts/list").Params, "cursor"); got != `"o\u0070aque=="` {
		w.Errorf("B-32: the cursor went up as %s", got)
	}
	return asItIs()
}

// freshness: the hints never reach the client, and the bridge may answer from
// what it kept (B-40), but never a call (B-43).
func freshness(w *world) cell {
	fresh := `{"resultType":"complete","ttlMs":60000,"cacheScope":"private","prompts":[]}`
	w.server.on("prompts/list", result(fresh))
	for range 2 {
		x := w.client.call("prompts/list", "")
		expect(w.T, "J-18", string(x.response.Result), `{"prompts":[]}`)
	}
	if n := len(w.server.requests("prompts/list")); n != 1 {
		w.Errorf("B-40: the server was asked %d times", n)
	}
	return via("used by the bridge, which answers from its cache")
}
