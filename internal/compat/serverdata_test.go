package compat

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/mcp"
)

var serverData = group{"What the server says of itself", []feature{
	{name: "`serverInfo`: name, version", rules: "A.3, P-4", kinds: "YYYY", run: infoMember(`name`, `"modern"`)},
	{name: "`serverInfo.title`", rules: "A.3, P-2", kinds: "NNYY", run: infoMember(`title`, `"Modern server"`)},
	{name: "`serverInfo`: icons, description, website", rules: "A.3, P-2", kinds: "NNNY", run: infoExtras},
	{name: "A server without `serverInfo`", rules: "A.3, J-17", kinds: "TTTT", script: anonymous, run: madeUpInfo},
	{name: "`instructions`, other `_meta`", rules: "A.3", kinds: "YYYY", run: instructions},
	{name: "Capabilities: tools, prompts, resources, logging", rules: "A.4", kinds: "YYYY", run: coreCapabilities},
	{name: "Capability `completions`", rules: "A.4", kinds: "NYYY", run: completionsCapability},
	{name: "Capabilities `listChanged`, `subscribe`", rules: "A.4, C-13", kinds: "YYYY", run: listenCapabilities},
	{name: "Extensions other than tasks", rules: "A.4", kinds: "YYYY", run: extensions},
	{name: "What the client declares", rules: "A.5, A-20, A-21, P-5", kinds: "TTTT", run: declaredUp},
}}

func infoMember(name, value string) func(*world) cell {
	return func(w *world) cell {
		return w.which(name, orNull(member(w.client.opened.Result, "serverInfo", name)), kept(value), left("null"))
	}
}

// orNull stands for an absent member in comparisons.
func orNull(raw string) string {
	if raw == "" {
		return "null"
	}
	return raw
}

func infoExtras(w *world) cell {
	info := member(w.client.opened.Result, "serverInfo")
	var got []string
	for _, name := range []string{"icons", "description", "websiteUrl"} {
		got = append(got, orNull(member([]byte(info), name)))
	}
	return w.which("extras", "["+got[0]+","+got[1]+","+got[2]+"]",
		kept(`[[{"src":"https://example.com/i.png"}],"Only modern.","https://example.com"]`), left(`[null,null,null]`))
}

func anonymous(s *server) {
	s.on("server/discover", result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{}}`))
}

func madeUpInfo(w *world) cell {
	expect(w.T, "serverInfo", member(w.client.opened.Result, "serverInfo"), `{"name":"upstream","version":"0.0.0"}`)
	return via("the configured name, version 0.0.0")
}

func instructions(w *world) cell {
	expect(w.T, "instructions", member(w.client.opened.Result, "instructions"), `"Ask first."`)
	expect(w.T, "_meta", member(w.client.opened.Result, "_meta"), `{"com.example/k":1}`)
	return asItIs()
}

func coreCapabilities(w *world) cell {
	caps := member(w.client.opened.Result, "capabilities")
	for _, name := range []string{"tools", "prompts", "resources", "logging", "experimental"} {
		if member([]byte(caps), name) == "" {
			w.Errorf("A.4: %s is missing: %s", name, caps)
		}
	}
	for _, name := range []string{"tasks", "elicitation"} {
		if member([]byte(caps), name) != "" {
			w.Errorf("A.4: %s was made up: %s", name, caps)
		}
	}
	return asItIs()
}

func completionsCapability(w *world) cell {
	w.server.on("completion/complete", result(`{"resultType":"complete","completion":{"values":["a"]}}`))
	x := w.client.call("completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"n","value":""}}`)
	expect(w.T, "the method works", string(x.response.Result), `{"completion":{"values":["a"]}}`)
	return w.which("completions", orNull(member(w.client.opened.Result, "capabilities", "completions")),
		kept(`{}`), outcome{lacks("not advertised; the method works"), "null"})
}

// listenCapabilities: what cannot be delivered is not promised.
func listenCapabilities(w *world) cell {
	caps := member(w.client.opened.Result, "capabilities")
	expect(w.T, "A.4", member([]byte(caps), "resources"), `{"listChanged":true,"subscribe":true}`)
	expect(w.T, "A.4", member([]byte(caps), "tools"), `{"listChanged":true}`)
	deaf := newWorld(w.T, w.version, func(o *mount.Options) { o.Legacy.NoGET = true })
	deaf.open()
	expect(w.T, "A.4: without a stream", member(deaf.client.opened.Result, "capabilities", "resources"), `{}`)
	if r := deaf.client.send(http.MethodGet, "", nil); r.status != http.StatusMethodNotAllowed {
		w.Errorf("A-31: HTTP %d to a GET that is not offered", r.status)
	}
	return asItIs()
}

func extensions(w *world) cell {
	expect(w.T, "A.4", member(w.client.opened.Result, "capabilities", "extensions"), `{"com.example/ui":{}}`)
	return asItIs()
}

// declaredUp: the server learns exactly what this client can do, in its own
// words, with every request.
func declaredUp(w *world) cell {
	w.server.on("tools/list", result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}`))
	w.client.call("tools/list", "")
	x := w.server.last("tools/list")
	expect(w.T, "A-20: clientInfo", x.meta("clientInfo"), `{"name":"old","version":"1"}`)
	got := x.meta("clientCapabilities")
	base := via("roots and sampling, without what is no longer defined")
	return w.which("clientCapabilities", got,
		outcome{base, `{"roots":{},"sampling":{},"experimental":{"e":{}}}`},
		outcome{via("the same, and elicitation, which means forms"), `{"roots":{},"sampling":{},"elicitation":{},"experimental":{"e":{}}}`},
		outcome{via("as declared, without `roots.listChanged` and `tasks`"), `{"roots":{},"sampling":{"tools":{},"context":{}},` +
			`"elicitation":{"form":{},"url":{}},"experimental":{"e":{}}}`})
}

// before reports whether the revision is older than v.
func (w *world) before(v mcp.Version) bool { return !w.version.AtLeast(v) }
