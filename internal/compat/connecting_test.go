package compat

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/mcp"
)

var connecting = group{"Connecting", []feature{
	{name: "Handshake (`initialize`)", rules: "A-1, A-5, A-13, A-14", kinds: "TTTT", run: handshake},
	{name: "Session (`Mcp-Session-Id`) and its end by `DELETE`", rules: "A-26, A-28, A-30, A-32", kinds: "YYYY", run: sessionAndDelete},
	{name: "Requests without a session", rules: "A-28, A-18, J-10", kinds: "TTTT", run: sessionless},
	{name: "`MCP-Protocol-Version` header", rules: "A-34, E-10", kinds: "NNYY", run: versionHeader},
	{name: "`ping`", rules: "A-9, P-5", kinds: "TTTT", run: ping},
	{name: "Batches of messages", rules: "E-1, E-2, E-14, E-15, E-16, E-18, A-2, J-25", kinds: "NTNN", run: batches},
	{name: "Answer as JSON or as event stream", rules: "D-T1, D-T2, D-T3, E-4, E-6, C-25", kinds: "YYYY", run: jsonOrStream},
	{name: "Priming event at the start of a stream", rules: "E-7", kinds: "NNNY", run: primingEvent},
	{name: "Resuming a dropped stream (`Last-Event-ID`)", rules: "E-9, E-12, E-20, E-21, D-T18, J-11", kinds: "YYYY", run: resuming},
	{name: "Long streams ended early, the rest to be fetched (a setting)", rules: "E-8", kinds: "NNNY", options: polling, run: polled},
	{name: "Over HTTP+SSE", rules: "E-25, E-26, E-27, E-29", kinds: "YYYY", run: overHTTPSSE},
	{name: "Over WebSocket", rules: "E-33", kinds: "YYYY", run: overWebSocket},
	{name: "Over stdio", rules: "E-31, A-36", kinds: "YYYY", run: overStdio},
}}

// handshake: the server is asked server/discover, never initialize (which the
// server of these tests refuses to see).
func handshake(w *world) cell {
	expect(w.T, "protocolVersion", member(w.client.opened.Result, "protocolVersion"), quote(string(w.version)))
	if n := len(w.server.requests("server/discover")); n != 1 {
		w.Errorf("A-1: %d × server/discover", n)
	}
	return via("answered from the server's `server/discover`")
}

func sessionAndDelete(w *world) cell {
	if id := w.client.session; len(id) < 16 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		w.Errorf("A-26: the session id is %q", id)
	}
	if r := w.client.send(http.MethodDelete, "", nil); r.status != http.StatusNoContent {
		w.Errorf("A-30: DELETE: HTTP %d", r.status)
	}
	// A dead session is 404.
	if r := w.client.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); r.status != http.StatusNotFound {
		w.Errorf("A-30, A-28: after DELETE HTTP %d", r.status)
	}
	return asItIs()
}

func sessionless(w *world) cell {
	w.server.on("tools/call", result(`{"resultType":"complete","content":[]}`))
	c := w.newClient()
	c.header = http.Header{"Mcp-Protocol-Version": {string(w.version)}}
	x := c.call("tools/call", `{"name":"t","arguments":{}}`)
	expect(w.T, "result", string(x.response.Result), `{"content":[]}`)
	expect(w.T, "A-18: declared", w.server.last("tools/call").meta("clientCapabilities"), `{}`)
	w.namedOnPage()
	return via("served; nothing can be asked of the client, but who answers for clients does (`questions`, `sampling`, `roots`), a person where the request has credentials")
}

func versionHeader(w *world) cell {
	foreign := http.Header{"Mcp-Protocol-Version": {"1999-01-01"}}
	other := http.Header{"Mcp-Protocol-Version": {"2025-03-26"}}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if r := w.client.send(http.MethodPost, ping, other); r.status != http.StatusOK {
		w.Errorf("A-34: another supported version: HTTP %d", r.status)
	}
	switch r := w.client.send(http.MethodPost, ping, foreign); r.status {
	case http.StatusBadRequest:
		return asItIs()
	case http.StatusOK:
		return lacks("ignored")
	default:
		w.Fatalf("A-34: HTTP %d", r.status)
		return cell{}
	}
}

func ping(w *world) cell {
	x := w.client.call("ping", "")
	expect(w.T, "result", string(x.response.Result), `{}`)
	return via("answered by the bridge; servers no longer know it")
}

func batches(w *world) cell {
	w.server.on("tools/list", result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}`))
	w.server.on("prompts/list", result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","prompts":[]}`))
	r := w.client.post(`[{"jsonrpc":"2.0","id":"a","method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/x"},` +
		`{"jsonrpc":"2.0","id":"b","method":"prompts/list"},{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}},` +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}]`)
	if r.status == http.StatusBadRequest {
		if m := r.next(); m == nil || m.Error == nil || m.Error.Code != -32600 {
			w.Errorf("E-2: %+v", m)
		}
		return lacks("`400` with `-32600`")
	}
	got := map[string]string{}
	for m := r.next(); m != nil; m = r.next() {
		got[m.ID] = string(m.Result)
	}
	expect(w.T, "a", got[`"a"`], `{"tools":[]}`)
	expect(w.T, "b", got[`"b"`], `{"prompts":[]}`)
	if answer, ok := got[`"c"`]; ok {
		w.Errorf("J-13: the cancelled call was answered: %q", answer)
	}
	// What the bridge must refuse: an empty array, responses among requests,
	// initialize in an array.
	for _, bad := range []string{
		`[]`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"result":{}}]`,
		`[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]`,
	} {
		if r := w.client.post(bad); r.status != http.StatusBadRequest || r.next().Error.Code != -32600 {
			w.Errorf("E-14, A-2: HTTP %d for %s", r.status, bad)
		}
	}
	return via("split into single requests, answered together")
}

// jsonOrStream: a result alone comes as JSON; with a notification before it, it
// comes as a stream that ends behind it.
func jsonOrStream(w *world) cell {
	w.server.on("tools/call", result(`{"resultType":"complete","content":[]}`), func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1}`)
		x.result(`{"resultType":"complete","content":[]}`)
	})
	plain := w.client.call("tools/call", `{"name":"t","arguments":{}}`)
	stream := w.client.call("tools/call", `{"name":"t","arguments":{},"_meta":{"progressToken":1}}`)
	if got := plain.header.Get("Content-Type"); got != "application/json" {
		w.Errorf("E-4: a plain result came as %q", got)
	}
	if got := stream.header.Get("Content-Type"); got != "text/event-stream" || len(stream.before) != 1 {
		w.Errorf("E-6, C-25: %q with %d notifications", got, len(stream.before))
	}
	return asItIs()
}

func primingEvent(w *world) cell {
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1}`)
		x.result(`{"resultType":"complete","content":[]}`)
	})
	x := w.client.start("tools/call", `{"name":"t","arguments":{},"_meta":{"progressToken":1}}`)
	id, data, err := x.event()
	switch {
	case err != nil:
		w.Fatal(err)
	case data == "" && id == "":
		w.Error("E-7: an empty event without an id")
	case data != "":
		return lacks("no such event, which old clients cannot read")
	}
	return asItIs()
}

// resuming: a dropped connection cancels nothing. The call goes on, and its
// result is fetched with the id of the last event seen.
func resuming(w *world) cell {
	release := make(chan struct{})
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1}`)
		<-release
		x.result(`{"resultType":"complete","content":[{"type":"text","text":"late"}]}`)
	})
	x := w.client.start("tools/call", `{"name":"t","arguments":{},"_meta":{"progressToken":1}}`)
	seen := x.until("notifications/progress")
	x.stop()
	r := w.client.send(http.MethodGet, "", http.Header{"Last-Event-Id": {seen.EventID}})
	close(release)
	m := r.next()
	if m == nil || m.ID != x.id {
		w.Fatalf("E-20: resumed with HTTP %d and %+v", r.status, m)
	}
	expect(w.T, "result", string(m.Result), `{"content":[{"type":"text","text":"late"}]}`)
	stream, _, _ := strings.Cut(seen.EventID, "-")
	if !strings.HasPrefix(m.EventID, stream+"-") || m.EventID == seen.EventID {
		w.Errorf("E-21: event %s after %s", m.EventID, seen.EventID)
	}
	if n := len(w.server.requests("tools/call")); n != 1 {
		w.Errorf("E-12: the call was made %d times", n)
	}
	return asItIs()
}

func polling(opt *mount.Options) {
	opt.Legacy.Poll, opt.Legacy.ParkAfter = 50*time.Millisecond, 20*time.Millisecond
}

// polled: the stream of a call that takes long ends with a hint when to come back
// for the rest, if the client is of the revision that knows of this.
func polled(w *world) cell {
	release := make(chan struct{})
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1}`)
		<-release
		x.result(`{"resultType":"complete","content":[]}`)
	})
	x := w.client.start("tools/call", `{"name":"t","arguments":{},"_meta":{"progressToken":1}}`)
	seen := x.until("notifications/progress")
	var rest []byte
	if w.version == mcp.V20251125 {
		rest, _ = io.ReadAll(x.body)
	}
	close(release)
	if len(rest) == 0 {
		if x.finish(); x.response == nil {
			w.Error("E-8: the stream ended without the response")
		}
		return lacks("the stream lasts as long as the call")
	}
	if text := string(rest); !strings.Contains(text, "retry: ") || strings.Contains(text, "data: {") {
		w.Errorf("E-8: the stream ended with %q", text)
	}
	var m *message
	for range 100 { // while the result has yet to come this one ends early, too
		if m != nil {
			break
		}
		m = w.client.send(http.MethodGet, "", http.Header{"Last-Event-Id": {seen.EventID}}).next()
	}
	if m == nil || m.ID != x.id {
		w.Errorf("E-8: the rest is %+v", m)
	}
	return asItIs()
}

// carried is the exchange that every transport must be able to carry: a tool
// that asks the client for its roots in between, which all revisions can.
func (w *world) carried() (call, question string) {
	w.server.on("tools/call", rootsFirst(`{"content":[{"type":"text","text":"done"}]}`))
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{}}}`, "roots/list"
}

// openings are the first two messages of a client on a shared channel.
func openings(version mcp.Version) []string {
	return []string{
		`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + string(version) +
			`","capabilities":` + declared(version) + `,"clientInfo":{"name":"old","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
}
