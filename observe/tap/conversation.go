package tap

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/report"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/rawjson"
)

// conversation sees the messages of a session.
type conversation struct {
	downstream.Conversation
	tap    *Tap
	number uint64
	client string // as it calls itself
	asking asking
	visit  atomic.Pointer[report.Visit] // nil: clients are not counted, or it has not opened yet
}

// losing returns the context to open the session with, which tells what its client gets in
// other words, where clients are counted.
func (c *conversation) losing(ctx context.Context) context.Context {
	if c.tap.book == nil {
		return ctx
	}
	return downstream.Losing(ctx, func(what string) { c.visit.Load().Lost(what) })
}

// counts has the session counted as one of its client.
func (c *conversation) counts(visit report.Visit) {
	if c.tap.book != nil {
		c.visit.Store(&visit)
	}
}

// Look implements downstream.Conversation.
func (c *conversation) Look() observe.Conversation {
	c.catchUp()
	seen := c.Conversation.Look()
	seen.Number = c.number
	return seen
}

// Close implements downstream.Conversation.
func (c *conversation) Close(cause error) {
	c.tap.leave(c)
	c.Conversation.Close(cause)
}

// Serve implements downstream.Conversation.
func (c *conversation) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	c.visit.Load().Called(req.ProgressToken != nil, req.Method == mcp.MethodResourcesSubscribe)
	traced := c.trace(&caller, &req)
	if traced == nil && !c.tap.open.Load() {
		c.Conversation.Serve(ctx, caller, req, out)
		return
	}
	r := c.reply(out, req.Method)
	r.traced, r.name = traced, nameOf(&req)
	r.note(observe.Event{Kind: "request", ID: string(req.ID), Bytes: len(req.Params), Body: c.tap.body(&req.Message)})
	c.Conversation.Serve(ctx, caller, req, r)
}

// nameOf returns the name of the tool or prompt that a request is about; "" for others.
func nameOf(req *downstream.Request) string {
	name, _ := rawjson.Text(req.Name)
	return clip(name)
}

// reply begins a call.
func (c *conversation) reply(out downstream.Reply, method string) *reply {
	return &reply{Reply: out, conv: c, method: clip(method), number: c.tap.calls.Add(1), began: time.Now()}
}

// Resume implements downstream.Conversation.
func (c *conversation) Resume(caller downstream.Caller, flow []byte, out downstream.Reply) error {
	if c.tap.tracer == nil && !c.tap.open.Load() {
		return c.Conversation.Resume(caller, flow, out)
	}
	return c.Conversation.Resume(caller, flow, c.resumed(&caller, flow, out))
}

// Notify implements downstream.Conversation.
func (c *conversation) Notify(caller downstream.Caller, msg jsonrpc.Message) {
	if c.tap.open.Load() {
		c.tap.note(observe.Event{Session: c.number, Client: c.client, Kind: "notification", Method: msg.Method, Bytes: len(msg.Params), Body: c.tap.body(&msg)})
	}
	c.Conversation.Notify(caller, msg)
}

// Answer implements downstream.Conversation.
func (c *conversation) Answer(caller downstream.Caller, msg jsonrpc.Message) error {
	if c.tap.open.Load() {
		e := observe.Event{Session: c.number, Client: c.client, Kind: "answer", ID: short(msg.ID), Bytes: len(msg.Result), Status: "result"}
		if msg.Error != nil {
			e.Status = "error " + strconv.Itoa(msg.Error.Code)
		}
		e.Body = c.tap.bodyOf(msg)
		c.tap.note(e)
	}
	c.asking.answered(&msg)
	c.visit.Load().Answered()
	return c.Conversation.Answer(caller, msg)
}

// reply sees what a call sends to its client.
type reply struct {
	downstream.Reply
	conv   *conversation
	method string
	name   string // of the tool or prompt
	number uint64
	began  time.Time
	rounds atomic.Int32
	traced *traces.CallTrace // nil: it is not
}

func (r *reply) note(e observe.Event) {
	if !r.conv.tap.open.Load() {
		return
	}
	e.Session, e.Client, e.Call, e.Name = r.conv.number, r.conv.client, r.number, r.name
	if e.Method == "" {
		e.Method = r.method
	}
	r.conv.tap.note(e)
}

// Send implements downstream.Reply.
func (r *reply) Send(msg downstream.Message) {
	r.interim(&msg)
	r.Reply.Send(msg)
}

// Queue implements downstream.Reply.
func (r *reply) Queue(msg downstream.Message) {
	r.interim(&msg)
	r.Reply.Queue(msg)
}

func (r *reply) interim(msg *downstream.Message) {
	if r.inside() {
		return
	}
	e := observe.Event{Out: true, Kind: "notification", Method: msg.Method, Bytes: len(msg.Params)}
	if msg.Kind() == jsonrpc.Request {
		r.asked(msg)
		e.Kind, e.ID, e.Body = "question", short(msg.ID), r.conv.tap.bodyOf(msg.Message)
	} else {
		e.Body = r.conv.tap.body(&msg.Message)
	}
	r.note(e)
}

// bodyOf is body of a question or an answer, whose id would open the question.
func (h *Hub) bodyOf(msg jsonrpc.Message) []byte {
	if id := short(msg.ID); id != string(msg.ID) {
		msg.ID = jsonrpc.ID(id + `…"`)
	}
	return h.body(&msg)
}

// short is enough of a question's id to find its answer, and too little to answer it.
func short(id jsonrpc.ID) string { return observe.QuestionID(string(id)) }

// Finish implements downstream.Reply.
func (r *reply) Finish(msg downstream.Message) {
	e := observe.Event{Out: true, Kind: "response", ID: string(msg.ID), Bytes: len(msg.Result), Status: "complete", Took: time.Since(r.began),
		Body: r.conv.tap.body(&msg.Message)}
	if msg.Error != nil {
		e.Kind, e.Status = "error", strconv.Itoa(msg.Error.Code)
	}
	if !r.inside() {
		r.note(e)
	}
	r.finished(&msg)
	r.Reply.Finish(msg)
}

// Refuse implements downstream.Reply.
func (r *reply) Refuse(refusal *downstream.Refusal) bool {
	done := r.Reply.Refuse(refusal)
	if done {
		r.ended(0, strconv.Itoa(refusal.Status))
		r.note(observe.Event{Out: true, Kind: "error", Status: "HTTP " + strconv.Itoa(refusal.Status), Took: time.Since(r.began)})
	}
	return done
}

// Abandon implements downstream.Reply.
func (r *reply) Abandon() {
	r.ended(0, "cancelled")
	r.note(observe.Event{Out: true, Kind: "end", Status: "cancelled", Took: time.Since(r.began)})
	r.Reply.Abandon()
}

// opened notes how a session began.
func (c *conversation) opened(req *jsonrpc.Message, result []byte, began time.Time) {
	if !c.tap.open.Load() {
		return
	}
	r := c.reply(nil, req.Method)
	r.note(observe.Event{Kind: "request", ID: string(req.ID), Bytes: len(req.Params), Body: c.tap.body(req)})
	answer := jsonrpc.Message{ID: req.ID, Result: result}
	r.note(observe.Event{Out: true, Kind: "response", ID: string(req.ID), Bytes: len(result), Status: "complete", Took: time.Since(began), Body: c.tap.body(&answer)})
}
