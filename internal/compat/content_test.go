package compat

var content = group{"Content of tools and prompts", []feature{
	block("text", `{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5}}`, "YYYY", "B.8, B-39"),
	block("image", `{"type":"image","data":"AA==","mimeType":"image/png"}`, "YYYY", "B.8"),
	block("audio", `{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"audience":["assistant"]}}`, "TYYY", "B.8, B-39",
		outcome{via("an embedded resource with the same data"), `{"type":"resource","resource":{"uri":"bridge-audio:1","mimeType":"audio/wav","blob":"AA=="},"annotations":{"audience":["assistant"]}}`}),
	block("embedded resource", `{"type":"resource","resource":{"uri":"u:1","text":"t"}}`, "YYYY", "B.8"),
	block("resource link", `{"type":"resource_link","uri":"u:1","name":"n","title":"N","mimeType":"text/plain","description":"d"}`, "TTYY", "B.8, B-39",
		outcome{via("a text block that names it"), `{"type":"text","text":"Resource: N\nURI: u:1\nType: text/plain\nDescription: d"}`}),
	block("unknown type", `{"type":"hologram","x":1}`, "TTTT", "B.8",
		outcome{via("a text block with the JSON"), `{"type":"text","text":"{\"type\":\"hologram\",\"x\":1}"}`}),
	block("icons of resource links", `{"type":"resource_link","uri":"u:1","name":"n","icons":[{"src":"https://example.com/i.png"}]}`, "NNNY", "B.8",
		left(`{"type":"resource_link","uri":"u:1","name":"n"}`),
		outcome{lacks("left out, or the link is a text block"), `{"type":"text","text":"Resource: n\nURI: u:1"}`}),
	block("`_meta`, `lastModified`", `{"type":"resource","resource":{"uri":"u:1","text":"t","_meta":{"a":1}},"_meta":{"b":2},"annotations":{"priority":1,"lastModified":"2026-01-01T00:00:00Z"}}`,
		"NNYY", "B.8", left(`{"type":"resource","resource":{"uri":"u:1","text":"t"},"annotations":{"priority":1}}`)),
	{name: "Prompt messages", rules: "B.4, B.8, B-39", kinds: "YYYY", run: promptMessage},
	{name: "Resource contents", rules: "B.4", kinds: "YYYY", run: resourceContents},
	{name: "Completion, with `context`", rules: "B.4", kinds: "YYYY", run: completion},
	{name: "Methods that only server and client know", rules: "B.4, P-4", kinds: "YYYY", run: vendorMethod},
}}

// block is the row of one content block, which stands second in its list.
func block(name, text, kinds, rules string, others ...outcome) feature {
	return feature{name: name, rules: rules, kinds: kinds, run: func(w *world) cell {
		first := `{"type":"text","text":"first"}`
		got := w.called(`{"content":[` + first + `,` + text + `]}`)
		outcomes := []outcome{{asItIs(), `{"content":[` + first + `,` + text + `]}`}}
		for _, o := range others {
			outcomes = append(outcomes, outcome{o.cell, `{"content":[` + first + `,` + o.want + `]}`})
		}
		return w.which("content", got, outcomes...)
	}}
}

func promptMessage(w *world) cell {
	text := `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"t"}},{"role":"assistant","content":{"type":"resource","resource":{"uri":"u:1","text":"t"}}}]}`
	w.server.on("prompts/get", result(`{"resultType":"complete",`+text[1:]))
	x := w.client.call("prompts/get", `{"name":"p","arguments":{"a":"b"}}`)
	if got := w.server.last("prompts/get").Header.Get("Mcp-Name"); got != "p" {
		w.Errorf("B.2: Mcp-Name %q", got)
	}
	return w.which("prompt", string(x.response.Result), kept(text))
}

func resourceContents(w *world) cell {
	text := `{"contents":[{"uri":"u:1","mimeType":"text/plain","text":"t"},{"uri":"u:2","blob":"AA=="}]}`
	w.server.on("resources/read", complete(text[1:len(text)-1]))
	x := w.client.call("resources/read", `{"uri":"u:1"}`)
	if got := w.server.last("resources/read").Header.Get("Mcp-Name"); got != "u:1" {
		w.Errorf("B.2: Mcp-Name %q", got)
	}
	return w.which("contents", string(x.response.Result), kept(text))
}

func completion(w *world) cell {
	w.server.on("completion/complete", result(`{"resultType":"complete","completion":{"values":["x"],"total":1,"hasMore":false}}`))
	params := `{"ref":{"type":"ref/resource","uri":"u:{x}"},"argument":{"name":"x","value":""},"context":{"arguments":{"y":"1"}}}`
	x := w.client.call("completion/complete", params)
	up := w.server.last("completion/complete")
	expect(w.T, "context", member(up.Params, "context"), `{"arguments":{"y":"1"}}`)
	return w.which("completion", string(x.response.Result), kept(`{"completion":{"values":["x"],"total":1,"hasMore":false}}`))
}

func vendorMethod(w *world) cell {
	w.server.on("com.example/do", result(`{"resultType":"complete","ttlMs":5,"task":7}`))
	x := w.client.call("com.example/do", `{"cursor":null,"requestState":"mine"}`)
	up := w.server.last("com.example/do")
	expect(w.T, "B.4: params", member(up.Params, "requestState"), `"mine"`)
	return w.which("result", string(x.response.Result), kept(`{"task":7}`))
}
