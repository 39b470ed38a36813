package bridge

import (
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// Here is what a kept call has open: questions of the client and links to the page, how
// the client hears of them, and what its request is answered when its time is over.

// pendingQuestion is something that a person has yet to answer.
type pendingQuestion struct {
	key  string             // server request id, or the input request's where it is asked elsewhere
	link string             // of the page; empty: the client was asked
	msg  downstream.Message // to the client: the question, or the invitation to the page; empty where it is only told the link

	elicitation string // elicitationId of the invitation; empty: there is none
	met         bool   // the person agreed to open the page
}

// invite has the client open the page.
func (p *keptCall) invite(q pendingQuestion) {
	p.note(q)
	if out := p.reply(); out != nil {
		out.Send(q.msg)
	}
}

// met notes that the person goes to the page: the call then waits as for a question to
// the client itself.
func (p *keptCall) met(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.IndexFunc(p.open, func(q pendingQuestion) bool { return q.key == key }); at >= 0 {
		p.open[at].met = true
		p.waitLocked()
	}
}

// linked notes where a person answers, and tells the client.
func (p *keptCall) linked(key, link string) {
	p.note(pendingQuestion{key: key, link: link})
	p.tell()
}

func (p *keptCall) note(q pendingQuestion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, q)
	p.waitLocked()
}

// pageWords come before the page's link in what a client shows its person.
const pageWords = "A question waits for you at "

// tell has the client say where its person is asked: as progress, and as a log message.
func (p *keptCall) tell() {
	link := p.link()
	if link == "" {
		return
	}
	words := pageWords + link
	p.call.drive(mrtr.Noted(words))
	out := p.reply()
	if out == nil || !out.Interactive() || !p.conv.hears("notice") {
		return
	}
	out.Send(downstream.Notification(mcp.NotificationMessage,
		append(rawjson.AppendQuote([]byte(`{"level":"notice","logger":"mcp-bridge","data":`), words), '}')))
}

// hears reports whether a log message of a level is for the client: where it named no
// level, the server's own choice is left to the server (2025-11-25, logging).
func (c *conversation) hears(level string) bool {
	wanted := c.logLevel()
	if wanted == "" {
		return c.server.Logging
	}
	return mcp.Severity(level) >= mcp.Severity(wanted)
}

// link is the first page that the client was not invited to.
func (p *keptCall) link() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.open {
		if p.open[i].link != "" && p.open[i].elicitation == "" {
			return p.open[i].link
		}
	}
	return ""
}

// settled notes that a question is open no more, and returns it; its key is empty when
// it was not open.
func (p *keptCall) settled(key string) (q pendingQuestion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.IndexFunc(p.open, func(q pendingQuestion) bool { return q.key == key }); at >= 0 {
		q = p.open[at]
		p.open = slices.Delete(p.open, at, at+1)
		p.waitLocked()
	}
	return q
}

// expire answers the request with what is pending, and lets the call wait for the same
// one.
func (p *keptCall) expire() {
	p.mu.Lock()
	out, id, open := p.out, p.id, slices.Clone(p.open)
	if out == nil || len(open) == 0 {
		p.mu.Unlock()
		return
	}
	p.out = nil
	p.mu.Unlock()
	if evicted := p.conv.keptCalls().remember(p); evicted != nil {
		evicted.call.drive(mrtr.Failed(&mrtr.LimitReached{Limit: "limits.flows", Value: p.conv.b.limits.FlowsPerSession}))
	}
	result, err := p.pending(open)
	finish(out, id, result, err)
}

// pending is the answer of a request whose question is open: for tools a result that a
// model can read to its person, for others an error.
func (p *keptCall) pending(open []pendingQuestion) ([]byte, *jsonrpc.Error) {
	var words strings.Builder
	words.WriteString("This call waits for a person's answer, and is not done. ")
	var link string
	for i := range open {
		if link = open[i].link; link != "" {
			words.WriteString("Open this page in a browser and answer there: " + link + " ")
			break
		}
	}
	if link == "" {
		words.WriteString("Answer the question that was shown. ")
	}
	words.WriteString("Then make the same call again, with the same arguments: it goes on from there, and nothing is asked or done twice.")
	if p.call.flow.Method == mcp.MethodToolsCall {
		return translate.ToolError(words.String()), nil
	}
	return nil, fault.Uncut(jsonrpc.CodeInternal, words.String(), fault.Detail{Name: "url", Value: rawjson.AppendQuote(nil, link)})
}
