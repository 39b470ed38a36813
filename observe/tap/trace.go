package tap

import (
	"strings"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// trace begins the trace of a call, if it is to have one. Of those that have none
// nothing is allocated.
func (c *conversation) trace(caller *downstream.Caller, req *downstream.Request) *traces.CallTrace {
	if c.tap.tracer == nil {
		return nil
	}
	parent, sampled := c.tap.tracer.Decide(req.Meta, caller.Header)
	if !sampled {
		return nil
	}
	name, _ := rawjson.Text(req.Name)
	return c.tap.tracer.Begin(parent, c.start(caller, req.Method, name, req.ID))
}

// asking knows whose open questions are traced.
type asking struct {
	mu sync.Mutex
	of map[jsonrpc.ID]*traces.CallTrace
}

// asked notes a question of a call that is traced.
func (r *reply) asked(msg *downstream.Message) {
	if r.traced == nil {
		return
	}
	id := strings.Clone(string(msg.ID))
	r.traced.Asked(id, clip(msg.Method))
	r.conv.asking.note(jsonrpc.ID(id), r.traced)
}

// note notes whose an open question is.
func (a *asking) note(id jsonrpc.ID, call *traces.CallTrace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[jsonrpc.ID]*traces.CallTrace{}
	}
	a.of[id] = call
}

// answered ends the question that a message answers.
func (a *asking) answered(msg *jsonrpc.Message) {
	a.mu.Lock()
	call := a.of[msg.ID]
	delete(a.of, msg.ID)
	a.mu.Unlock()
	if call == nil {
		return
	}
	code := 0
	if msg.Error != nil {
		code = msg.Error.Code
	}
	call.Answered(string(msg.ID), code)
}

// finished ends the trace of a call that was answered.
func (r *reply) finished(msg *downstream.Message) {
	switch {
	case r.traced == nil:
	case msg.Error != nil:
		r.ended(msg.Error.Code, "")
	case r.method == mcp.MethodToolsCall && string(rawjson.Get(msg.Result, "isError")) == "true":
		r.ended(0, "tool_error")
	default:
		r.ended(0, "")
	}
}

// ended ends the trace of a call, and forgets its questions.
func (r *reply) ended(code int, fault string) {
	if r.traced == nil {
		return
	}
	r.traced.End(code, fault)
	a := &r.conv.asking
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, call := range a.of {
		if call == r.traced {
			delete(a.of, id)
		}
	}
}

// traced begins the trace of a round, if its call has one, and returns the request that
// hands it on.
func (r *reply) trace(call *upstream.Call, number int) (*traces.Round, *upstream.Call) {
	if r == nil || r.traced == nil {
		return nil, call
	}
	round := r.traced.Round(number)
	handed := *call
	handed.Params, handed.Header = round.Hand(call.Params, call.Header)
	return &round, &handed
}
