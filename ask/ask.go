// Package ask answers what servers ask of clients that cannot be asked: a person
// on a page, a model, configured roots, or a fixed word.
//
// Package bridge hands in each input request that its client has no capability for
// and is told the answer, at once or later. What may be declared upstream follows
// from what is configured: nothing, where nothing is.
//
//	input request ──▶ Room.Ask ──▶ decline, default, roots    answered at once
//	                          └──▶ page, model                answered later
package ask

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Options say who answers.
type Options struct {
	Server  string       // what people are told the server is called
	Policy  Policy       // of elicitations
	Desk    *page.Desk   // where people are asked; needed for Page and Approve
	Model   *model.Model // answers sampling requests; nil: nobody does
	Approve bool         // a person must approve every sampling request first
	// Roots returns the file URIs for a request with these headers; nil: there are no
	// roots for anybody. It is asked anew for each call.
	Roots func(http.Header) []string
	// Open shows a link to the person at this machine; nil: nobody is there. It must
	// not block.
	Open func(link string)
}

// Policy says what answers an elicitation.
type Policy string

// The policies.
const (
	Page    Policy = "page"    // a person in a browser
	Decline Policy = "decline" // no, for everybody
	Default Policy = "default" // the form's defaults, where it has them all
	Nobody  Policy = "error"   // nothing: the capability is not declared
)

// Room answers for clients. Its methods are safe for concurrent use.
type Room struct {
	opt    Options
	models sync.WaitGroup // requests to the model; each ends with its inquiry
}

// New returns a room, or nil when nothing is configured that could answer.
func New(opt Options) *Room {
	if opt.Policy == Nobody && opt.Model == nil && opt.Roots == nil {
		return nil
	}
	return &Room{opt: opt}
}

// Roots returns the result of roots/list for a request with these headers; nil: it
// has no roots here.
func (r *Room) Roots(header http.Header) []byte {
	if r.opt.Roots == nil {
		return nil
	}
	uris := r.opt.Roots(header)
	if len(uris) == 0 {
		return nil
	}
	list := []byte(`{"roots":[`)
	for i, uri := range uris {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(rawjson.AppendQuote(append(list, `{"uri":`...), uri), '}')
	}
	return append(list, "]}"...)
}

// Close waits for what runs. All tickets must have been withdrawn or answered.
func (r *Room) Close() { r.models.Wait() }

// Reach is what can be answered on one exchange beside what the policies say.
type Reach struct {
	Person bool // a person's answer finds back to the client
	Roots  bool // there are roots for the request
}

// Capabilities returns what may be declared upstream for a client that declared own,
// both as JSON objects: own and what is answered here besides, as far as reach allows.
func (r *Room) Capabilities(own []byte, reach Reach) []byte {
	var edits []rawjson.Edit
	if r.Answers(mcp.MethodElicitationCreate, reach) {
		elicitation := rawjson.Get(own, "elicitation")
		if elicitation != nil && !rawjson.Has(elicitation, "form") && !rawjson.Has(elicitation, "url") {
			elicitation = []byte(`{"form":{}}`) // what an empty one stands for
		}
		for _, mode := range [...]string{"form", "url"} {
			if !rawjson.Has(elicitation, mode) && (mode == "form" || r.opt.Policy != Default) {
				elicitation = rawjson.Apply(nil, elicitation, rawjson.Edit{Name: mode, Value: []byte("{}")})
			}
		}
		edits = append(edits, rawjson.Edit{Name: "elicitation", Value: elicitation})
	}
	if sampling := rawjson.Get(own, "sampling"); r.Answers(mcp.MethodSamplingCreateMessage, reach) && !rawjson.Has(sampling, "tools") {
		edits = append(edits, rawjson.Edit{Name: "sampling", Value: rawjson.Apply(nil, sampling, rawjson.Edit{Name: "tools", Value: []byte("{}")})})
	}
	if reach.Roots && !rawjson.Has(own, "roots") {
		edits = append(edits, rawjson.Edit{Name: "roots", Value: []byte("{}")})
	}
	return rawjson.Apply(nil, own, edits...)
}

// Answers reports whether requests of a method are answered here.
func (r *Room) Answers(method string, reach Reach) bool {
	switch kind, _ := mcp.InputKindOf(method); kind {
	case mcp.Roots:
		return reach.Roots
	case mcp.Sampling:
		return r.opt.Model != nil && (reach.Person || !r.opt.Approve)
	case mcp.Elicitation:
		return r.opt.Policy != Nobody && (reach.Person || r.opt.Policy != Page)
	}
	return false // whatever it is, nobody here has an answer
}

// Inquiry is an input request that its client cannot be asked.
type Inquiry struct {
	Method string
	Params []byte // as the server wrote them; must not change
	Tool   string // what was called
	Roots  []byte // of the request, as Room.Roots has them
	// Owner is for whom the call was made: an opaque name of a user or a session.
	Owner  string
	Named  bool   // Owner is a user
	Tenant string // whose share of what is scarce the question takes; empty: nobody's
	// Account is charged with what it takes to answer; it may be nil.
	Account *budget.Account
	// Invites says that the client is sent the link to open it: nothing else should.
	Invites  bool
	Spent    *model.Spent // counts the sampling requests of the session; may be nil
	Deadline time.Time    // of the call
	// Lost reports that an answer of a person would reach nobody any more; nil: it does until the deadline.
	Lost func() bool
	// Answer is told the input response, or else why there is none. It is called at
	// most once, maybe before Ask returns.
	Answer func(response []byte, why error)
}

// Ticket is an inquiry that waits.
type Ticket struct {
	Link     string // where a person answers; empty: no person is asked
	withdraw func()
	refuse   func(cancel bool)
}

// Refuse says that the person does not want to open the link, or with cancel that
// there was no choice. The inquiry's Answer is told so, unless it has been told another.
func (t Ticket) Refuse(cancel bool) {
	if t.refuse != nil {
		t.refuse(cancel)
	}
}

// Withdraw says that the answer is no longer wanted. It is idempotent.
func (t Ticket) Withdraw() {
	if t.withdraw != nil {
		t.withdraw()
	}
}

// ErrNoDefaults is told where the policy is default and the form lacks some.
var ErrNoDefaults = errors.New("the question's form has no defaults for all that it needs, or some that it would not accept itself (questions: default)")

// Ask has an inquiry answered.
func (r *Room) Ask(q Inquiry) Ticket {
	switch kind, _ := mcp.InputKindOf(q.Method); kind {
	case mcp.Roots:
		q.Answer(q.Roots, nil)
	case mcp.Sampling:
		return r.sample(&q)
	case mcp.Elicitation:
		return r.elicit(&q)
	default:
		q.Answer(nil, fmt.Errorf("nobody answers %.40q here", q.Method))
	}
	return Ticket{}
}

func (r *Room) elicit(q *Inquiry) Ticket {
	visit := text(q.Params, "mode") == "url"
	var asked form.Form
	if !visit && r.opt.Policy != Decline {
		var err error
		if asked, err = form.Parse(rawjson.Get(q.Params, "requestedSchema")); err != nil {
			q.Answer(nil, err)
			return Ticket{}
		}
	}
	switch r.opt.Policy {
	case Decline:
		q.Answer([]byte(`{"action":"decline"}`), nil)
		return Ticket{}
	case Default:
		content, ok := asked.Defaults()
		if !ok {
			q.Answer(nil, ErrNoDefaults)
			return Ticket{}
		}
		q.Answer(rawjson.Apply(nil, []byte(`{"action":"accept"}`), rawjson.Edit{Name: "content", Value: content}), nil)
		return Ticket{}
	}
	question := r.question(q)
	question.Form = asked
	if visit {
		var err error
		if question.URL, err = address(text(q.Params, "url")); err != nil {
			q.Answer(nil, err)
			return Ticket{}
		}
	}
	return r.put(q, question)
}

func (r *Room) question(q *Inquiry) page.Question {
	return page.Question{
		Server: r.opt.Server, Tool: q.Tool, Message: shown(text(q.Params, "message")), Owner: q.Owner, Named: q.Named, Tenant: q.Tenant, Account: q.Account, Deadline: q.Deadline, Lost: q.Lost,
		Answer: func(result []byte) { q.Answer(result, nil) },
	}
}

// put asks a person.
func (r *Room) put(q *Inquiry, question page.Question) Ticket {
	link, err := r.opt.Desk.Ask(question)
	if err != nil {
		q.Answer(nil, err)
		return Ticket{}
	}
	if r.opt.Open != nil && !q.Invites {
		r.opt.Open(link)
	}
	return Ticket{
		Link:     link,
		withdraw: func() { r.opt.Desk.Withdraw(link) },
		refuse:   func(cancel bool) { r.opt.Desk.Refuse(link, cancel) },
	}
}

// sample has the model answer, after a person approved where one must.
func (r *Room) sample(q *Inquiry) Ticket {
	ctx, cancel := context.WithDeadline(context.Background(), q.Deadline)
	run := func() {
		defer cancel()
		held := budget.On(q.Account)
		defer held.Release()
		q.Answer(r.opt.Model.Sample(ctx, q.Params, q.Tenant, q.Spent, &held))
	}
	if !r.opt.Approve {
		r.models.Go(run)
		return Ticket{withdraw: cancel}
	}
	question := r.question(q)
	question.Message = "It asks a model for text. This is what the model would get:"
	held := budget.On(q.Account)
	preview, err := model.Preview(q.Params, &held)
	held.Release()
	if err != nil {
		cancel()
		q.Answer(nil, err)
		return Ticket{}
	}
	question.Preview = preview
	question.Answer = func(result []byte) {
		if text(result, "action") != "accept" {
			cancel()
			q.Answer(nil, errors.New("a person did not approve the sampling request"))
			return
		}
		r.models.Go(run)
	}
	ticket := r.put(q, question)
	onDesk := ticket.withdraw
	ticket.withdraw = func() {
		cancel()
		if onDesk != nil {
			onDesk()
		}
	}
	return ticket
}
