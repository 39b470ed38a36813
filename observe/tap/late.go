package tap

import (
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

// This file ties what is seen to the call that it belongs to: a request upstream to the
// client's that it is made for, and the rest of a call to somebody who began to look
// after it had begun.

// seenBy returns the reply in which a call is seen that says something to out, the
// innermost one: a call that waits for the same request again has that request's. nil:
// nobody sees it.
func seenBy(out any) (found *reply) {
	for range maxInside {
		switch at := out.(type) {
		case *reply:
			found, out = at, at.Reply
		case downstream.Origin:
			out = at.Reply()
		default:
			return found
		}
	}
	return found
}

// maxInside bounds how many replies stand in each other: a call's own, that of the
// request that waits for it, and what each is seen in.
const maxInside = 8

// inside reports whether what goes through r is seen further on, too.
func (r *reply) inside() bool {
	_, passes := r.Reply.(downstream.Origin)
	return passes && seenBy(r.Reply) != nil
}

// origin returns the call that makes a request, and its how many-th it is; nil: nobody's,
// or of one that nobody looks at.
func (c *caller) origin(call *upstream.Call) (of *reply, number int) {
	if c.tap.tracer == nil && !c.tap.open.Load() {
		return nil, 0
	}
	if of = seenBy(call.Origin); of != nil {
		number = int(of.rounds.Add(1))
	}
	return of, number
}

// late returns a request that left before anybody looked at its call; nil: nobody does now.
func (c *caller) late(call *upstream.Call) *round {
	if !c.tap.open.Load() {
		return nil
	}
	of := seenBy(call.Origin)
	if of == nil {
		return nil
	}
	return &round{tap: c.tap, of: of, number: int(of.rounds.Load()), id: c.tap.requestID()}
}

// requestID is that of a request to the server for those who look: its own on the wire is
// minted later.
func (h *Hub) requestID() jsonrpc.ID {
	return jsonrpc.ID(`"up-` + strconv.FormatUint(h.requests.Add(1), 10) + `"`)
}

// catchUp has the rest of the session's calls seen that began while nobody looked.
func (c *conversation) catchUp() {
	if !c.tap.open.Load() {
		return
	}
	c.tap.catching.Lock() // two who look see a call once
	defer c.tap.catching.Unlock()
	c.Conversation.Watch(c.caught)
}

// caught returns the reply in which the rest of a call is seen, and notes what is known of
// its beginning; nil: it is seen already.
func (c *conversation) caught(flow observe.Flow, out downstream.Reply) downstream.Reply {
	if r := seenBy(out); r != nil {
		if past := int32(flow.Round + 1); r.rounds.Load() < past && flow.Waits != observe.ForServer {
			r.rounds.Store(past) // some passed while nobody looked
		}
		return nil
	}
	r := c.reply(out, flow.Method)
	r.name, r.began = clip(flow.Name), flow.Began
	r.rounds.Store(int32(flow.Round + 1))
	r.note(observe.Event{At: flow.Began, Kind: begun, Status: flow.Waits.String(), Round: flow.Round + 1, Took: time.Since(flow.Began)})
	for _, q := range flow.Questions {
		if q.Asked && !q.Answered && q.By == observe.ByClient {
			r.note(observe.Event{At: flow.Since, Out: true, Kind: "question", Method: q.Method, ID: q.ID})
		}
	}
	return r
}

// begun is the kind of an event that is no message: a call had begun when somebody looked.
const begun = "begun"
