package compat

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/mcp"
)

// secret stands in every payload of a bad answer; neither the log nor an error
// may repeat it.
const secret = "s3cr3t-payload"

// badInput is one way in which a server breaks the protocol, the rule that it
// breaks, and what of it the client is told.
type badInput struct {
	name   string
	method string // tools/call when empty
	rule   string
	says   string
	answer answer
}

func whole(text string) answer {
	return func(x *incoming) { x.raw(200, "application/json", strings.ReplaceAll(text, "ID", x.ID)) }
}

func events(text string) answer {
	return func(x *incoming) { x.raw(200, "text/event-stream", strings.ReplaceAll(text, "ID", x.ID)) }
}

func input(members string) answer {
	return result(`{"resultType":"input_required","x":"` + secret + `",` + members + `}`)
}

func ask(entry string) answer {
	return input(`"inputRequests":{"roots":{"method":"roots/list"},"k":` + entry + `}`)
}

const worded = `"message":"` + secret + `"`

var badInputs = []badInput{
	// Rounds that cannot be (B-27, D-12, D-T6, D-T7, C-33).
	{"unknown resultType", "", "B-27", "resultType", result(`{"resultType":"weird","content":["` + secret + `"]}`)},
	{"resultType that is a text", "", "B-27", "resultType", result(`{"resultType":"for ` + secret + `"}`)},
	{"resultType that is no string", "", "B-27", "resultType", result(`{"resultType":7,"content":["` + secret + `"]}`)},
	{"task that was not declared", "", "B-27", "task", result(`{"resultType":"task","taskId":"` + secret + `","status":"working"}`)},
	{"task on another method", "prompts/get", "B-27", "task", result(`{"resultType":"task","taskId":"` + secret + `","status":"working"}`)},
	{"input_required on a list", "prompts/list", "D-12", "prompts/list", input(`"inputRequests":{"r":{"method":"roots/list"}}`)},
	{"input_required on a vendor's method", "com.example/do", "D-12", "com.example/do", input(`"requestState":"` + secret + `"`)},
	{"neither inputRequests nor state", "", "D-T6", "neither", input(`"y":1`)},
	{"an empty map and no state", "", "D-T6", "neither", input(`"inputRequests":{}`)},
	{"an empty map and a state of null", "", "D-T6", "neither", input(`"inputRequests":{},"requestState":null`)},
	{"inputRequests that is no object", "", "D-T6", "inputRequests", input(`"inputRequests":["` + secret + `"]`)},
	{"state that is no string", "", "D-T6", "requestState", input(`"requestState":{"a":"` + secret + `"}`)},
	{"state that is too large", "", "D-I5", "requestState", input(`"requestState":"` + secret + strings.Repeat("x", 2048) + `"`)},
	{"a kind that was not declared", "", "C-33", "elicitation", ask(`{"method":"elicitation/create","params":{` + worded + `,"requestedSchema":{"type":"object"}}}`)},
	{"a mode that was not declared", "", "C-33", "elicitation", ask(`{"method":"elicitation/create","params":{"mode":"url","url":"u:1",` + worded + `}}`)},
	{"an unknown kind", "", "C-33", "unknown method", ask(`{"method":"x/y","params":{` + worded + `}}`)},
	{"a kind that is a text", "", "C-33", "unknown method", input(`"inputRequests":{"for ` + secret + `":{"method":"for ` + secret + `","params":{}}}`)},
	{"a question without params", "", "C-33", "params", ask(`{"method":"sampling/createMessage"}`)},
	{"sampling with tools that were not declared", "", "C-33", "sampling.tools", ask(`{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[],"y":"` + secret + `"}}`)},
	{"sampling that is malformed", "", "C-33", "malformed", ask(`{"method":"sampling/createMessage","params":{"messages":"` + secret + `","maxTokens":1}}`)},
	{"too many questions", "", "D-I18", "input requests", input(`"inputRequests":{` + many(65) + `}`)},
	// Results that cannot be translated (B-30).
	{"a result that is no object", "", "B-30", "not an object", result(`"` + secret + `"`)},
	{"a result without its member", "prompts/list", "B-30", "prompts", result(`{"resultType":"complete","x":"` + secret + `"}`)},
	{"a result whose member has another type", "", "B-30", "content", result(`{"resultType":"complete","content":"` + secret + `"}`)},
	// Messages that are none (E-36, E-38, E-41).
	{"duplicate keys", "", "E-41", "malformed", whole(`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"a":"` + secret + `","a":1}}`)},
	{"duplicate keys of input requests", "", "E-41", "malformed", whole(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"\u0061":{"method":"roots/list"}},"x":"` + secret + `"}}`)},
	{"both result and error", "", "E-41", "malformed", whole(`{"jsonrpc":"2.0","id":ID,"result":{"a":"` + secret + `"},"error":{"code":1,"message":"m"}}`)},
	{"no JSON-RPC", "", "E-41", "malformed", whole(`{"id":ID,"result":{"content":["` + secret + `"]}}`)},
	{"JSON that breaks off", "", "E-41", "malformed", whole(`{"jsonrpc":"2.0","id":ID,"result":{"content":["` + secret)},
	{"bytes that are no UTF-8", "", "E-41", "malformed", whole(`{"jsonrpc":"2.0","id":ID,"result":{"content":["` + secret + "\xff" + `"]}}`)},
	{"nesting without end", "", "E-41", "malformed", whole(`{"jsonrpc":"2.0","id":ID,"result":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`)},
	{"a response with the wrong id", "", "E-38", "different request", whole(`{"jsonrpc":"2.0","id":"other","result":{"content":["` + secret + `"]}}`)},
	{"a stream with the wrong id alone", "", "D-15", "before it was complete", events(`data: {"jsonrpc":"2.0","id":"other","result":{"content":["` + secret + `"]}}` + "\n\n")},
	{"a stream of no JSON", "", "E-41", "malformed", events("data: " + secret + "\n\n")},
	{"a stream that ends early", "", "D-15", "before it was complete", events(`data: {"jsonrpc":"2.0","method":"notifications/x","params":{"a":"` + secret + `"}}` + "\n\n")},
	{"a stream that ends inside of an event", "", "D-15", "before it was complete", events(`data: {"jsonrpc":"2.0","id":ID,"result":{"content":["` + secret + `"]}}`)},
	{"a body that ends early", "", "D-15", "before it was complete", func(x *incoming) {
		x.w.Header().Set("Content-Length", "1000")
		x.raw(200, "application/json", `{"jsonrpc":"2.0","id":`+x.ID+`,"result":{"content":["`+secret)
		_ = http.NewResponseController(x.w).Flush() // the head must be there
		panic(http.ErrAbortHandler)
	}},
	{"a body that is too large", "", "E-41", "exceeds", whole(`{"jsonrpc":"2.0","id":ID,"result":{"content":["` + strings.Repeat(secret, 20000) + `"]}}`)},
	{"an event that is too large", "", "E-41", "exceeds", events(`data: {"jsonrpc":"2.0","id":ID,"result":{"content":["` + strings.Repeat(secret, 20000) + `"]}}` + "\n\n")},
	{"something else than JSON", "", "E-41", "text/html", func(x *incoming) { x.raw(200, "text/html", secret) }},
	{"nothing but 202", "", "E-41", "202", func(x *incoming) { x.w.WriteHeader(http.StatusAccepted) }},
	{"404 without a modern error", "", "E-40", "does not speak", func(x *incoming) { x.raw(404, "text/plain", secret) }},
	{"a failed server", "", "E-41", "HTTP 500", func(x *incoming) { x.raw(500, "text/plain", secret) }},
}

func many(n int) string {
	var entries []string
	for i := range n {
		entries = append(entries, quote(strings.Repeat("k", i+1))+`:{"method":"roots/list"}`)
	}
	return strings.Join(entries, ",")
}

// TestBadInputEndsOneFlow: whatever a server answers ends that one flow with an
// error that names the fault and its author. Another call of the same session
// and another session do not notice; the log has the broken rule, and neither
// tells the payload (H-11, D-I5, F-2).
func TestBadInputEndsOneFlow(t *testing.T) {
	for _, bad := range badInputs {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			bad.try(t)
		})
	}
}

func (b *badInput) try(t *testing.T) {
	w := newWorld(t, mcp.V20251125, func(o *mount.Options) {
		o.Upstream.MaxResponse = 256 << 10
		o.Bridge.Limits.Flow.State = 2048
	})
	if b.method == "" {
		b.method = "tools/call"
	}
	w.client.answers["roots/list"] = func(string) string {
		t.Error("C-33: a question of a round that is refused")
		return `{"roots":[]}`
	}
	w.client.initialize(`{"roots":{},"sampling":{}}`)
	other := w.newClient()
	other.initialize(`{}`)

	release := make(chan string, 1)
	running := make(chan *exchange)
	w.server.on("resources/read", func(x *incoming) {
		x.notify("notifications/x", `{}`)
		receive(w, x, release)
		x.result(`{"resultType":"complete","contents":[]}`)
	})
	go func() { running <- w.client.start("resources/read", `{"uri":"u:1"}`) }()
	neighbour := <-running

	w.server.on(b.method, b.answer)
	before := len(w.log.String())
	x := w.client.call(b.method, `{"name":"t"}`)
	b.judge(w, x, w.log.String()[before:])

	release <- "go on"
	neighbour.finish()
	if neighbour.response == nil || neighbour.response.Error != nil {
		t.Errorf("another call of the session was disturbed: %+v", neighbour.response)
	}
	w.server.on(b.method, complete(`"content":[],"prompts":[],"messages":[]`))
	for _, c := range []*client{w.client, other} {
		if y := c.call(b.method, `{"name":"t"}`); y.response.Error != nil {
			t.Errorf("the next call fails as well: %s", y.response.Text)
		}
	}
}

// judge looks at what the client got and at what the log says about it.
func (b *badInput) judge(w *world, x *exchange, log string) {
	w.Helper()
	var told string
	switch e := x.response.Error; {
	case e != nil:
		told = e.Message
		if e.Code != -32603 || member(e.Data, "bridge") == "" {
			w.Errorf("F-2: %s", x.response.Text)
		}
	case member(x.response.Result, "isError") == "true": // C-34
		told = string(x.response.Result)
	default:
		w.Fatalf("no failure: %s", x.response.Text)
	}
	if !strings.Contains(told, b.says) || !strings.Contains(told, "server") && !strings.Contains(told, "upstream") {
		w.Errorf("the client is told %q, which does not say %q and whose fault it is", told, b.says)
	}
	for _, text := range []string{x.response.Text, log} {
		if strings.Contains(text, secret) {
			w.Errorf("H-11, D-I5: the payload shows in %s", text)
		}
	}
	for _, line := range strings.Split(log, "\n") {
		if member(json.RawMessage(line), "rule") == quote(b.rule) {
			return
		}
	}
	w.Errorf("no line of the log names the rule %s:\n%s", b.rule, log)
}

// TestARefusedSubscriptionLeaksNoModernCode: the error of a listen goes through
// the table of F.2 like any other.
func TestARefusedSubscriptionLeaksNoModernCode(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.open()
	w.server.on("subscriptions/listen", failing(-32021, "no", `{"requiredCapabilities":{}}`))
	if e := w.client.call("resources/subscribe", `{"uri":"u:1"}`).response.Error; e == nil || e.Code != -32603 {
		t.Errorf("F.2: %+v", e)
	}
	w.server.on("subscriptions/listen", func(x *incoming) { // accepted, but not this resource (C-17)
		x.announce("notifications/subscriptions/acknowledged", `"notifications":{}`)
		x.gone()
	})
	if e := w.client.call("resources/subscribe", `{"uri":"u:1"}`).response.Error; e == nil || e.Code != -32602 {
		t.Errorf("C-17, F.4: %+v", e)
	}
	w.server.on("subscriptions/listen", failing(-32602, "no such resource", ""))
	if e := w.client.call("resources/subscribe", `{"uri":"u:1"}`).response.Error; e == nil || e.Code != -32602 {
		t.Errorf("F.2: %+v", e)
	}
}
