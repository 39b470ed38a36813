package compat

import (
	"net/http"
	"strings"
)

var errorRows = group{"Errors", []feature{
	{name: "Errors of the server", rules: "F-1, F-3, F-4, E-19, A-29, B-29", kinds: "YYYY", run: plainErrors},
	{name: "Codes of the modern protocol", rules: "F-2, F.2, A-15", kinds: "TTTT", run: modernCodes},
	{name: "Unknown resources", rules: "F.2, J-19", kinds: "TTTT", run: notFound},
	{name: "A capability that the client lacks", rules: "F.2", kinds: "TTTT", run: missingCapability},
	{name: "`-32042` (the user must visit a page)", rules: "F.2, J-23", kinds: "NNNY", run: urlError},
	{name: "`401` and `403` with their challenge", rules: "H-1, H-3, H-5, A-23", kinds: "YYYY", run: challenges},
	{name: "A server that is busy, broken or gone", rules: "E-19, E-40, E-41, F.4, D-T10, D-15", kinds: "TTTT", run: brokenServer},
}}

func plainErrors(w *world) cell {
	for _, e := range []struct {
		code int
		data string
	}{{-32601, ""}, {-32602, `{"a":1}`}, {-32603, ""}, {-32000, `"text"`}, {-32019, ""}, {1, ""}, {-32002, `{"uri":"u:1"}`}} {
		w.server.on("tools/call", failing(e.code, "because", e.data))
		x := w.client.call("tools/call", `{"name":"t"}`)
		got := x.response.Error
		if x.status != http.StatusOK || got == nil || got.Code != e.code || got.Message != "because" || orNull(string(got.Data)) != orNull(e.data) {
			w.Errorf("F-1, F-3, F-4: HTTP %d, %s", x.status, x.response.Text)
		}
	}
	return asItIs()
}

func modernCodes(w *world) cell {
	for _, code := range []int{-32700, -32600, -32020, -32022, -32050, -32099} {
		w.server.on("prompts/list", failing(code, "because", `{"supported":["2026-07-28"],"requested":"x"}`))
		x := w.client.call("prompts/list", "")
		e := x.response.Error
		if e == nil || e.Code != -32603 || member(e.Data, "bridge", "upstreamCode") == "" || x.status != http.StatusOK {
			w.Fatalf("F.2: HTTP %d, %s", x.status, x.response.Text)
		}
		if code == -32022 && member(e.Data, "supported") != "" {
			w.Errorf("A-15: %s", x.response.Text)
		}
	}
	return via("`-32603`; the server's code is in `data.bridge`")
}

func notFound(w *world) cell {
	w.server.on("resources/read", failing(-32602, "unknown", `{"uri":"u:\u0031"}`), failing(-32602, "bad", `{"uri":"u:2"}`), failing(-32002, "unknown", ""))
	for _, want := range []int{-32002, -32602, -32002} {
		x := w.client.call("resources/read", `{"uri":"u:1"}`)
		if e := x.response.Error; e == nil || e.Code != want {
			w.Errorf("J-19: %s, want %d", x.response.Text, want)
		}
	}
	return via("`-32002`, recognised by the URI in the error")
}

func missingCapability(w *world) cell {
	w.server.on("tools/call", failing(-32021, "x", `{"requiredCapabilities":{"extensions":{"com.example/y":{}}}}`))
	w.server.on("prompts/get", failing(-32021, "x", `{"requiredCapabilities":{"extensions":{"com.example/y":{}}}}`))
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(w.T, "F.2", member(x.response.Result, "isError"), `true`)
	if text := string(x.response.Result); !strings.Contains(text, "com.example/y") || !strings.Contains(text, string(w.version)) {
		w.Errorf("F.2: %s", text)
	}
	y := w.client.call("prompts/get", `{"name":"p"}`)
	expect(w.T, "F.2", member(y.response.Error.Data, "bridge", "requiredCapabilities"), `{"extensions":{"com.example/y":{}}}`)
	return via("a failed call that says what is missing and what to do")
}

func urlError(w *world) cell {
	w.server.on("tools/call", failing(-32042, "go there", `{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com","message":"m"}]}`))
	x := w.client.call("tools/call", `{"name":"t"}`)
	switch e := x.response.Error; {
	case e != nil && e.Code == -32042:
		return asItIs()
	case e != nil && e.Code == -32603:
		return lacks("`-32603`")
	}
	w.Fatal(x.response.Text)
	return cell{}
}

func challenges(w *world) cell {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		challenge := `Bearer error="insufficient_scope", scope="a b", resource_metadata="https://example.com/m"`
		refuse := func(x *incoming) {
			x.w.Header().Set("WWW-Authenticate", challenge)
			x.raw(status, "text/plain", "no")
		}
		w.server.on("tools/call", refuse)
		r := w.client.start("tools/call", `{"name":"t"}`).reply
		if r.status != status || r.header.Get("WWW-Authenticate") != challenge {
			w.Errorf("H-3, H-5: HTTP %d %q", r.status, r.header.Get("WWW-Authenticate"))
		}
		w.server.on("server/discover", refuse)
		c := w.newClient()
		c.header = http.Header{"Authorization": {"Bearer stale"}} // not served from what others may see
		r = c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + string(w.version) + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		if r.status != status || r.header.Get("WWW-Authenticate") != challenge {
			w.Errorf("A-23: HTTP %d %q", r.status, r.header.Get("WWW-Authenticate"))
		}
		if got := w.server.last("server/discover").Header.Get("Authorization"); got != "Bearer stale" {
			w.Errorf("H-1: discover went up with %q", got)
		}
	}
	return asItIs()
}

func brokenServer(w *world) cell {
	for _, status := range []int{400, 404, 405, 429, 500, 503} {
		w.server.on("tools/call", func(x *incoming) { x.raw(status, "text/html", "<p>no") })
		x := w.client.call("tools/call", `{"name":"t"}`)
		e := x.response.Error
		if e == nil || x.status != http.StatusOK || e.Code != -32603 || member(e.Data, "bridge", "httpStatus") == "" {
			w.Errorf("E-19, E-41: HTTP %d, %s", x.status, x.response.Text)
		}
	}
	// A stream that just ends: the call may have been executed, so that it is
	// not sent again, and the client is told.
	w.server.on("tools/call", func(x *incoming) { x.notify("notifications/x", `{}`) })
	before := len(w.server.requests("tools/call"))
	x := w.client.call("tools/call", `{"name":"t"}`)
	if e := x.response.Error; e == nil || e.Code != -32603 || len(w.server.requests("tools/call")) != before+1 {
		w.Errorf("D-15: %s", x.response.Text)
	}
	return via("`-32603` that names the cause, with HTTP status 200")
}
