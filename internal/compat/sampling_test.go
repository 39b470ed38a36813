package compat

import "strings"

var sampling = group{"Sampling (questions to the client's model)", []feature{
	{name: "Text", rules: "C.7, C-33", kinds: "TTTT", run: sample(
		`{"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"maxTokens":5,"systemPrompt":"s","modelPreferences":{"hints":[{"name":"h"}]},"includeContext":"thisServer","temperature":0.5}`,
		outcome{via("asked as `sampling/createMessage`"), `{"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"maxTokens":5,"systemPrompt":"s","modelPreferences":{"hints":[{"name":"h"}]},"includeContext":"thisServer","temperature":0.5}`})},
	{name: "Images", rules: "C.7", kinds: "TTTT", run: sample(
		`{"messages":[{"role":"user","content":{"type":"image","data":"AA==","mimeType":"image/png"}}],"maxTokens":5}`,
		outcome{via("as they are"), `{"messages":[{"role":"user","content":{"type":"image","data":"AA==","mimeType":"image/png"}}],"maxTokens":5}`})},
	{name: "Audio", rules: "C.7, J-7", kinds: "NTTT", run: sample(
		`{"messages":[{"role":"user","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}],"maxTokens":5}`,
		outcome{via("as it is"), `{"messages":[{"role":"user","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}],"maxTokens":5}`})},
	{name: "Messages of several blocks", rules: "C.7", kinds: "TTTT", run: sample(
		`{"messages":[{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]},{"role":"assistant","content":[{"type":"text","text":"3"}]}],"maxTokens":5}`,
		outcome{via("one message per block"), `{"messages":[{"role":"user","content":{"type":"text","text":"1"}},{"role":"user","content":{"type":"text","text":"2"}},{"role":"assistant","content":{"type":"text","text":"3"}}],"maxTokens":5}`},
		outcome{via("as they are"), `{"messages":[{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]},{"role":"assistant","content":[{"type":"text","text":"3"}]}],"maxTokens":5}`})},
	{name: "With tools", rules: "C.7, C-33, J-7", kinds: "NNNT", run: sampleWithTools},
}}

const sampled = `{"role":"assistant","model":"m","stopReason":"endTurn","content":{"type":"text","text":"x"}}`

// sample is the row of one sampling request. A revision that cannot express it
// fails the call, because leaving something out would change what is asked.
func sample(params string, outcomes ...outcome) func(*world) cell {
	return func(w *world) cell {
		w.server.on("tools/call", asking("sampling", `"s"`, `{"method":"sampling/createMessage","params":`+params+`}`, `{"content":[]}`))
		w.client.answers["sampling/createMessage"] = func(string) string { return sampled }
		x := w.client.call("tools/call", `{"name":"t"}`)
		if member(x.response.Result, "isError") != "" {
			if len(w.client.asked) > 0 || !strings.Contains(string(x.response.Result), "audio") {
				w.Errorf("J-7: %s", x.response.Text)
			}
			return lacks("the call fails and says why").unless(w.byModel(params))
		}
		w.retried("tools/call", `{"s":`+sampled+`}`)
		return w.which("the request", string(w.client.asked[0].Params), outcomes...)
	}
}

func sampleWithTools(w *world) cell {
	params := `{"messages":[{"role":"user","content":{"type":"text","text":"t"}},` +
		`{"role":"assistant","content":{"type":"tool_use","id":"1","name":"n","input":{}}},` +
		`{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":%s}}],` +
		`"maxTokens":5,"tools":[` + bareTool + `],"toolChoice":{"mode":"auto"}}`
	ask := asking("sampling", `"s"`, `{"method":"sampling/createMessage","params":`+strings.Replace(params, "%s", `[1]`, 1)+`}`, `{"content":[]}`)
	w.server.on("tools/call", func(x *incoming) {
		if caps := []byte(x.meta("clientCapabilities")); member(caps, "sampling", "tools") == "" {
			x.fail(-32021, "needs sampling with tools", `{"requiredCapabilities":{"sampling":{"tools":{}}}}`)
			return
		}
		ask(x)
	})
	w.client.answers["sampling/createMessage"] = func(string) string { return sampled }
	x := w.client.call("tools/call", `{"name":"t"}`)
	if member(x.response.Result, "isError") != "" {
		return w.told(x, "sampling with tools").unless(w.byModel(strings.Replace(params, "%s", `[1]`, 1)))
	}
	w.retried("tools/call", `{"s":`+sampled+`}`)
	want := strings.Replace(params, `"content":[],"structuredContent":%s`, `"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}`, 1)
	return w.which("the request", string(w.client.asked[0].Params), outcome{via("as it is, tool results as above"), want})
}
