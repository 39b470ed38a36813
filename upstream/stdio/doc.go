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
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// request is a call on its way.
type request struct {
	call   *upstream.Call
	id     jsonrpc.ID
	params []byte // call.Params, or a copy that declares another version
	own    bool   // the bridge has chosen the version
}

func (r *request) meta() []byte { return rawjson.Get(r.params, "_meta") }

const progressToken = "progressToken"

// token returns the caller's raw progress token; nil: none that counts.
func (r *request) token() []byte {
	token := rawjson.Get(r.meta(), progressToken)
	switch rawjson.KindOf(token) {
	case rawjson.String, rawjson.Number:
		return token
	}
	return nil
}

// line is what goes over the pipe. Callers' tokens may be the same, and clients choose theirs, so the request's id,
// which nobody else has and nobody can foresee, is its token, too (E-46).
func (r *request) line() []byte {
	params := r.params
	if r.token() != nil {
		meta := rawjson.Apply(nil, r.meta(), rawjson.Edit{Name: progressToken, Value: []byte(r.id)})
		params = rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta", Value: meta})
	}
	return transport.EndLine(jsonrpc.AppendRequest(nil, r.id, r.call.Method, params))
}

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
