package tap

import (
	"strings"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/rawjson"
)

// keptTrace is the member of a call's record that has its trace. Whoever reads records
// ignores what it does not know.
const keptTrace = "trace"

// checkpointer keeps the trace of a call with it, for the process that goes on with the call.
type checkpointer struct {
	downstream.Checkpointer
	reply *reply
}

// Checkpointer implements downstream.Reply.
func (r *reply) Checkpointer() downstream.Checkpointer {
	inner := r.Reply.Checkpointer()
	if inner == nil || r.traced == nil {
		return inner
	}
	return &checkpointer{inner, r}
}

// Save implements downstream.Checkpointer.
func (s *checkpointer) Save(k downstream.Checkpoint) error {
	k.Record = rawjson.Apply(nil, k.Record, rawjson.Edit{Name: keptTrace, Value: s.reply.traced.Keep()})
	return s.Checkpointer.Save(k)
}

// Leave implements downstream.Checkpointer: what was done here is a span.
func (s *checkpointer) Leave() {
	s.reply.traced.Leave()
	s.reply.ended(0, "")
	s.Checkpointer.Leave()
}

// resumed is the reply of a call that another process began.
func (c *conversation) resumed(caller *downstream.Caller, flow []byte, out downstream.Reply) *reply {
	method, _ := rawjson.Text(rawjson.Get(flow, "method"))
	r := c.reply(out, method)
	if c.tap.tracer != nil {
		kept := rawjson.Get(flow, keptTrace)
		r.traced = c.tap.tracer.Resume(kept, c.start(caller, method, "", jsonrpc.ID(rawjson.Get(flow, "id"))))
		r.askedBefore(kept, flow)
	}
	return r
}

// askedBefore notes the questions of a call that are open since another process asked them.
func (r *reply) askedBefore(kept, flow []byte) {
	if r.traced == nil {
		return
	}
	for in := range rawjson.Elements(rawjson.Get(flow, "inputs")) {
		id, _ := rawjson.Text(rawjson.Get(in, "serverRequestId"))
		method, _ := rawjson.Text(rawjson.Get(in, "method"))
		if id == "" || string(rawjson.Get(in, "asked")) != "true" || rawjson.Has(in, "response") {
			continue
		}
		r.traced.AskedBefore(kept, id, clip(method))
		r.conv.asking.note(jsonrpc.ID(id), r.traced)
	}
}

// start is what is known of a call when it begins.
func (c *conversation) start(caller *downstream.Caller, method, name string, id jsonrpc.ID) traces.Start {
	s := traces.Start{Mount: c.tap.path, Server: c.tap.server, Method: clip(method), Name: clip(name), Version: c.Version(), Transport: caller.Transport, HTTP: caller.HTTP,
		ID: clip(strings.Trim(string(id), `"`))}
	if caller.Session != "" {
		s.Session = logfield.Short(caller.Session)
	}
	return s
}
