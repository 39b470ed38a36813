package again

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

// Question is something that a person has yet to answer.
type Question struct {
	Key  string             // server request id, or the input request's where it is asked elsewhere
	Link string             // of the page; empty: the client was asked
	Msg  downstream.Message // to the client: the question, or the invitation to the page; empty where it is only told the link

	Elicitation string // elicitationId of the invitation; empty: there is none
	Met         bool   // the person agreed to open the page
}

// Invite has the client open the page.
func (p *Reply) Invite(q Question) {
	p.note(q)
	if out := p.reply(); out != nil {
		out.Send(q.Msg)
	}
}

// Met notes that the person goes to the page: the call then waits as for a question to
// the client itself.
func (p *Reply) Met(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.IndexFunc(p.open, func(q Question) bool { return q.Key == key }); at >= 0 {
		p.open[at].Met = true
		p.waitLocked()
	}
}

// Linked notes where a person answers, and tells the client.
func (p *Reply) Linked(key, link string) {
	p.note(Question{Key: key, Link: link})
	p.tell()
}

func (p *Reply) note(q Question) {
	if q.Link != "" || p.of.Patience > 0 {
		p.enlist()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.open, func(known Question) bool { return known.Key == q.Key }) {
		return // it is put once more
	}
	p.open = append(p.open, q)
	p.waitLocked()
}

// enlist has the same call find this one from now on: a person may take longer for what is to be asked
// than the client waits.
func (p *Reply) enlist() {
	if p.of.Calls == nil || !p.becomeKnown() {
		return
	}
	p.of.Calls.add(p)
	p.of.Session.Detached(&p.req, p.flow.Person()) // before the client comes back
}

func (p *Reply) becomeKnown() (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first = !p.known && !p.over
	p.known = true
	return first
}

// PageWords come before the page's link in what a client shows its person.
const PageWords = "A question waits for you at "

// tell has the client say where its person is asked: as progress, and as a log message.
func (p *Reply) tell() {
	link := p.link()
	if link == "" {
		return
	}
	words := PageWords + link
	p.flow.Drive(mrtr.Noted(words))
	if out, notice := p.reply(), Notice(p.of.Session, words); out != nil && notice != nil && out.Interactive() {
		out.Send(*notice)
	}
}

// Notice is the log message with these words, nil for a session that does not hear it.
func Notice(to Session, words string) *downstream.Message {
	if !to.Hears("notice") {
		return nil
	}
	msg := downstream.Notification(mcp.NotificationMessage,
		append(rawjson.AppendQuote([]byte(`{"level":"notice","logger":"mcp-bridge","data":`), words), '}'))
	return &msg
}

// link is the first page that the client was not invited to.
func (p *Reply) link() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.open {
		if p.open[i].Link != "" && p.open[i].Elicitation == "" {
			return p.open[i].Link
		}
	}
	return ""
}

// Settled notes that a question is open no more, and returns it; its key is empty when
// it was not open.
func (p *Reply) Settled(key string) (q Question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.IndexFunc(p.open, func(q Question) bool { return q.Key == key }); at >= 0 {
		q = p.open[at]
		p.open = slices.Delete(p.open, at, at+1)
		p.waitLocked()
	}
	return q
}

// expire answers the request with what is pending, and lets the call wait for the same
// one.
func (p *Reply) expire() {
	if p.of.Stopping != nil && p.of.Stopping() && p.asks() { // there will be no same one, for which an answer could wait
		p.flow.Drive(mrtr.Failed(downstream.ErrStopping))
		return
	}
	var out downstream.Reply
	var id jsonrpc.ID
	var open []Question
	p.flow.Detach(func() (first bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.open) > 0 {
			out, id, open, p.out = p.out, p.id, slices.Clone(p.open), nil
		}
		return out != nil && p.first
	})
	if out == nil {
		return
	}
	if evicted := p.of.Calls.evict(p); evicted != nil {
		evicted.flow.Drive(mrtr.Failed(&mrtr.LimitReached{Limit: "limits.flows", Value: p.of.Calls.most}))
	}
	result, err := p.pending(open)
	if err != nil {
		out.Finish(downstream.Failure(id, err))
		return
	}
	out.Finish(downstream.Result(id, result))
}

// asks reports whether a question is open.
func (p *Reply) asks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) > 0
}

// pending is the answer of a request whose question is open: for tools a result that a
// model can read to its person, for others an error.
func (p *Reply) pending(open []Question) ([]byte, *jsonrpc.Error) {
	var words strings.Builder
	words.WriteString("This call waits for a person's answer, and is not done. ")
	var link string
	for i := range open {
		if link = open[i].Link; link != "" {
			words.WriteString("Open this page in a browser and answer there: " + link + " ")
			break
		}
	}
	if link == "" {
		words.WriteString("Answer the question that was shown. ")
	}
	words.WriteString("Then make the same call again, with the same arguments")
	if !p.of.Astray {
		words.WriteString(": it goes on from there, and nothing is asked or done twice")
	}
	words.WriteString(".")
	if p.req.Method == mcp.MethodToolsCall {
		return translate.ToolError(words.String()), nil
	}
	return nil, fault.Uncut(jsonrpc.CodeInternal, words.String(), fault.Detail{Name: "url", Value: rawjson.AppendQuote(nil, link)})
}
