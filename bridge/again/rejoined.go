package again

import (
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
)

// Rejoined is a call that a request has just repeated.
type Rejoined struct {
	call   *Reply
	out    downstream.Reply
	open   []Question
	held   []mrtr.Event
	before lost     // the request that waited until then; zero: none did
	kept   *outcome // all there is to say, since the call is over; nil: it is not
}

// lost is a request whose connection broke.
type lost struct {
	out   downstream.Reply
	id    jsonrpc.ID
	first bool // it is the request that the flow began with
}

// GoOn shows what is open to the request that waits now, and lets the answers count that
// were held back. Of a call that is over it gives the outcome.
func (r *Rejoined) GoOn() {
	if r.kept != nil {
		keeper{r.call}.redeliver(r.out, r.kept)
		return
	}
	r.dismiss()
	for i := range r.open {
		if q := &r.open[i]; q.Msg.Method != "" && !q.Met {
			r.out.Send(q.Msg)
		}
	}
	if len(r.open) > 0 {
		r.call.tell()
	}
	for _, ev := range r.held {
		r.call.flow.Drive(ev)
	}
	r.call.flow.Drive(mrtr.Tick(true)) // what came due while nobody waited
}

// dismiss answers a request whose connection broke, now that another one waits for the call: its client
// may still come back for it.
func (r *Rejoined) dismiss() {
	p, gone := r.call, &r.before
	if gone.out == nil {
		return
	}
	if gone.first {
		p.flow.Outlives()
	}
	const words = "The connection of this call broke, and the same call was made again: that one gets the result."
	if p.req.Method == mcp.MethodToolsCall {
		gone.out.Finish(downstream.Result(gone.id, translate.ToolError(words)))
		return
	}
	gone.out.Finish(downstream.Failure(gone.id, fault.Internal(words)))
}
