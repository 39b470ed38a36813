package compat

var output = group{"Results of tools", []feature{
	{name: "`isError`", rules: "B-38", kinds: "YYYY", run: callResult(`{"content":[{"type":"text","text":"no"}],"isError":true}`)},
	{name: "`_meta` and vendor members of a result", rules: "B-28, P-2", kinds: "YYYY", run: callResult(`{"content":[],"_meta":{"a":1},"x":2}`)},
	{name: "`structuredContent`: an object", rules: "B-34, B-35, B-36, M-1", kinds: "TTYY", run: callResult(
		`{"content":[],"structuredContent":{"n":1}}`,
		outcome{via("a text block with the JSON"), `{"content":[{"type":"text","text":"{\"n\":1}"}]}`})},
	{name: "The same with the JSON as text already", rules: "B-36, M-1", kinds: "TTYY", run: callResult(
		`{"content":[{"type":"text","text":"{ \"n\": 1 }"}],"structuredContent":{"n":1}}`,
		outcome{via("the text block stands for it"), `{"content":[{"type":"text","text":"{ \"n\": 1 }"}]}`})},
	structured("an array", `[1,"a"]`, `"[1,\"a\"]"`),
	structured("a string", `"a"`, `"\"a\""`),
	structured("a number", `9007199254740993`, `"9007199254740993"`),
	structured("a boolean", `false`, `"false"`),
	structured("`null`", `null`, `"null"`),
	{name: "`structuredContent` without `content`", rules: "B-30", kinds: "TTTT", run: callResult("",
		outcome{via("a text block with the JSON"), `{"content":[{"type":"text","text":"{\"n\":1}"}]}`},
		outcome{via("kept, with an empty `content`"), `{"structuredContent":{"n":1},"content":[]}`})},
	{name: "A tool shown with a wrapped schema", rules: "B-34, Q10", kinds: "TTTT", run: wrappedTool},
	{name: "Big integers, lone surrogates, order of members", rules: "P-6", kinds: "YYYY", run: bytesSurvive},
}}

// structured is the row of a structured content that legacy revisions cannot
// carry as it is.
func structured(what, value, text string) feature {
	return feature{name: "`structuredContent`: " + what, rules: "B-34, B-36, J-8, Q10", kinds: "TTTT", run: callResult(
		`{"content":[],"structuredContent":`+value+`}`,
		outcome{via("a text block with the JSON"), `{"content":[{"type":"text","text":` + text + `}]}`},
		outcome{via("as `{\"result\": …}`, and a text block"), `{"content":[{"type":"text","text":` + text + `}],"structuredContent":{"result":` + value + `}}`})}
}

// called returns the result of a tool call as the client gets it.
func (w *world) called(result string) string {
	w.Helper()
	w.server.on("tools/call", complete(result[1:len(result)-1]))
	x := w.client.call("tools/call", `{"name":"t","arguments":{}}`)
	if x.response.Error != nil {
		w.Fatalf("the call failed: %s", x.response.Text)
	}
	return string(x.response.Result)
}

func callResult(result string, others ...outcome) func(*world) cell {
	return func(w *world) cell {
		if result == "" {
			return w.which("result", w.called(`{"structuredContent":{"n":1}}`), others...)
		}
		w.server.on("tools/call", func(x *incoming) {
			// Inserted, not appended, since the result may have a _meta of its own.
			x.result(`{"resultType":"complete",` + result[1:])
		})
		x := w.client.call("tools/call", `{"name":"t","arguments":{}}`)
		return w.which("result", string(x.response.Result), append(others, kept(result))...)
	}
}

// wrappedTool: where the schema was shown wrapped, an object is wrapped too, so
// that it matches what the client was told.
func wrappedTool(w *world) cell {
	w.listed("tools/list", "tools", `{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"oneOf":[{"type":"object"},{"type":"array"}]}}`)
	return w.which("result", w.called(`{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`),
		outcome{via("its result is wrapped, too"), `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"result":{"n":1}}}`},
		outcome{via("the text block stands for it"), `{"content":[{"type":"text","text":"{\"n\":1}"}]}`})
}

// bytesSurvive compares bytes, not meaning.
func bytesSurvive(w *world) cell {
	odd := `{"content":[{"type":"text","text":"\ud800 \u0041<&>"}],"z":9007199254740993,"a":[1.0,1e2, -0],"_meta":{"m":"\u2028"}}`
	w.server.on("tools/call", result(`{"resultType":"complete",`+odd[1:]))
	args := `{"z":9007199254740993,"a":"\udead","n":null,"f":1.50}`
	x := w.client.call("tools/call", `{"name":"t","arguments":`+args+`,"x":"\u0041"}`)
	if got := string(x.response.Result); got != odd {
		w.Errorf("P-6: down:\n got %s\nwant %s", got, odd)
	}
	up := w.server.last("tools/call")
	if got := member(up.Params, "arguments"); got != args {
		w.Errorf("P-6: up:\n got %s\nwant %s", got, args)
	}
	if got := member(up.Params, "x"); got != `"\u0041"` {
		w.Errorf("B-8: %s", got)
	}
	return asItIs()
}
