package view

import (
	"fmt"
	"slices"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/diff"
	"github.com/mcpbridge/bridge/rawjson"
)

// translating is a walk through a call's messages: it knows of each what it was on the
// other hop.
type translating struct {
	band     *band
	payloads bool
	request  *arrow   // of the client
	answer   *arrow   // the latest of the server
	inputs   []*input // of the server's latest input_required
	heard    []*arrow // notifications of the server that have not gone on
}

// input is an input request of the server on its way to the client and back.
type input struct {
	key    string
	raw    []byte
	method string
	asked  *arrow // nil: the client has not been asked
	reply  *arrow // nil: it has not answered
	sent   bool   // its answer went up
}

// translate says of every message what it was before.
func (b *band) translate(payloads bool) {
	t := &translating{band: b, payloads: payloads}
	for i := range b.Arrows {
		t.take(&b.Arrows[i])
		if payloads {
			b.Arrows[i].Payload = pretty(b.Arrows[i].Body)
		}
	}
	if b.State != "" {
		for _, a := range t.heard {
			a.Why, a.Rules = "This did not go on to the client.", diff.Unheard(a.Method)
		}
	}
}

func (t *translating) take(a *arrow) {
	switch {
	case a.Up && a.Out && a.Kind == "request":
		t.round(a)
	case a.Up && a.Kind == "notification":
		t.heard = append(t.heard, a)
	case a.Up:
		t.answered(a)
	case !a.Out && a.Kind == "request":
		t.request = a
	case !a.Out && a.Kind == "notification":
		a.Why, a.Rules = "This ends at the bridge.", diff.Swallowed(a.Method)
	case a.Kind == "question":
		t.question(a)
	case a.Kind == "answer":
		t.reply(a)
	case a.Kind == "notification":
		t.notification(a)
	case last(&a.Event):
		t.last(a)
	}
}

// compare notes how a message differs from what it was.
func (t *translating) compare(a, from *arrow, step diff.Step, before, after []byte) {
	if a.Body == nil || from == nil || from.Body == nil {
		return // it is no longer known, or was too long
	}
	a.From = from.Text
	a.Changes, a.More = diff.Compare(step, a.Method, before, after)
	if t.payloads {
		a.Before = pretty(from.Body)
	}
}

func member(a *arrow, names ...string) []byte {
	if a == nil {
		return nil
	}
	v := a.Body
	for _, name := range names {
		v = rawjson.Get(v, name)
	}
	return v
}

// round is a request to the server: the client's, or one of the bridge's own.
func (t *translating) round(a *arrow) {
	if a.Method != t.band.Method {
		a.Why, a.Rules = "The bridge asks this on behalf of the call.", diff.Rules(askedFor(a.Method))
	} else {
		t.compare(a, t.request, diff.Request, member(t.request, "params"), member(a, "params"))
	}
	for _, in := range t.inputs {
		if up := member(a, "params", "inputResponses", in.key); up != nil && in.reply != nil && !in.sent {
			in.sent = true
			if in.reply.Status == "result" {
				t.compare(in.reply, in.reply, diff.Answer, member(in.reply, "result"), up)
				in.reply.From, in.reply.Before = fmt.Sprintf("what goes up with round %d as %q", a.Round, in.key), ""
			} else {
				in.reply.Why, in.reply.Rules = "An error is no answer; the server gets a cancel.", diff.Rules("C.9 J-4")
			}
		}
	}
}

func askedFor(method string) string {
	switch method {
	case mcp.MethodTasksGet:
		return "G-3"
	case mcp.MethodTasksUpdate:
		return "G-6"
	case mcp.MethodTasksCancel:
		return "G-12"
	case mcp.MethodListen:
		return "C-12"
	}
	return "B-25"
}

// answered is the server's answer to a round.
func (t *translating) answered(a *arrow) {
	t.answer = a
	requests := member(a, "result", "inputRequests")
	if requests == nil {
		if a.Status == observe.InputRequired.String() {
			a.Why, a.Rules = "The server asked nothing and wants to be called again.", diff.Rules("D-T5 D-16")
		}
		return
	}
	a.Why, a.Rules = "This stays at the bridge, which asks the client.", diff.Rules("D-T4 P-4")
	t.inputs = nil
	for key, raw := range rawjson.Members(requests) {
		method, _ := rawjson.Text(rawjson.Get(raw, "method"))
		t.inputs = append(t.inputs, &input{key: string(key), raw: raw, method: method})
	}
}

// question is an input request as the client sees it.
func (t *translating) question(a *arrow) {
	i := slices.IndexFunc(t.inputs, func(in *input) bool { return in.asked == nil && in.method == a.Method })
	if i < 0 {
		return
	}
	in := t.inputs[i]
	in.asked = a
	after := append(rawjson.AppendQuote([]byte(`{"method":`), a.Method), '}')
	if params := member(a, "params"); params != nil {
		after = rawjson.Apply(nil, after, rawjson.Edit{Name: "params", Value: params})
	}
	t.compare(a, t.answer, diff.Question, in.raw, after)
	a.From = fmt.Sprintf("the input request %q", in.key)
}

func (t *translating) reply(a *arrow) {
	for _, in := range t.inputs {
		if in.asked != nil && in.asked.ID == a.ID && in.reply == nil {
			in.reply = a
			return
		}
	}
}

func (t *translating) notification(a *arrow) {
	if a.Method == mcp.NotificationCancelled { // those of the server stay at the bridge
		a.Why, a.Rules = "The bridge takes its question back: an answer that comes now counts for nothing.", diff.Rules("C.9")
		return
	}
	i := slices.IndexFunc(t.heard, func(h *arrow) bool { return h.Method == a.Method })
	if i < 0 {
		a.Why, a.Rules = "The bridge says this of its own accord.", diff.Rules("D-17 G-5")
		return
	}
	t.compare(a, t.heard[i], diff.Notification, member(t.heard[i], "params"), member(a, "params"))
	t.heard = slices.Delete(t.heard, i, i+1)
}

// last is the last word to the client.
func (t *translating) last(a *arrow) {
	result, fault := member(a, "result"), member(a, "error")
	switch from := t.answer; {
	case a.Kind == "end":
		a.Why, a.Rules = "The client gave the call up and gets no answer.", diff.Rules("D-T13")
	case from == nil && t.band.Late: // what it was is not known
	case from == nil && a.Kind == "error":
		a.Why, a.Rules = "The bridge answers this itself.", diff.Rules("F-2")
	case from == nil:
		a.Why, a.Rules = "The bridge answers this itself.", diff.LocalRules(t.band.Method)
	case fault != nil && from.Kind == "error" && member(from, "error") != nil:
		t.compare(a, from, diff.Failure, member(from, "error"), fault)
	case result != nil && from.Kind == "response" && from.Status == observe.Final.String() && from.Method == t.band.Method:
		t.compare(a, from, diff.Result, member(from, "result"), result)
	case result != nil && from.Kind == "error":
		t.compare(a, from, diff.Failure, member(from, "error"), nil)
	case result != nil && from.Method == mcp.MethodTasksGet:
		t.compare(a, from, diff.Result, member(from, "result", "result"), result)
	default:
		a.Why, a.Rules = "The bridge ends the call.", diff.Rules("F-2 D-T17")
	}
}
