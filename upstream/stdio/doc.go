// Package stdio speaks with servers that are processes: it starts a command, ends it
// with all that it started, and joins the requests of all callers on its one channel of
// lines. [Client] is the bridge's modern client for such a server; [Lines] hands lines of
// any era on to those who read them.
//
//	Client ──▶ child ─┬▶ pipe: requests that wait, each a waiter
//	  │               └▶ process: goroutines for input, output, stderr and the end
//	  └▶ crashes: under whose requests it ended, which are refused for a while
package stdio

import (
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// request is a call on its way.
type request struct {
	call   *upstream.Call
	id     jsonrpc.ID
	params []byte // call.Params, or a copy that declares another version
}

func (r *request) meta() []byte { return rawjson.Get(r.params, "_meta") }

// sink is where a call's interim messages go.
type sink struct {
	notify func(jsonrpc.Message)
	idle   func() // of the Call
	// listen: the stream is a subscription, whose messages name it (C-18).
	listen bool
}

// begun returns what tells of a subscription that it has begun, for which the sink listens; nil: it
// is for a request.
func (s *sink) begun() *bool {
	if !s.listen {
		return nil
	}
	begun, next := new(bool), s.notify
	s.notify = func(msg jsonrpc.Message) {
		*begun = true
		if next != nil {
			next(msg)
		}
	}
	return begun
}
