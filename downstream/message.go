package downstream

import (
	"fmt"

	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Message is one message to a client with its parts apart, so that nobody has to
// parse what was just put together. The transport at whose edge it leaves gives it
// its frame, once.
type Message struct {
	jsonrpc.Message
	// Text is the whole message where it has its frame already, otherwise nil: it came
	// from a server of the client's own era and passes as it is, or its result was
	// written straight into it. The parts then alias it.
	Text []byte
}

// AppendTo appends the whole message to dst.
func (m *Message) AppendTo(dst []byte) []byte {
	if m.Text != nil {
		return append(dst, m.Text...)
	}
	return m.Message.AppendTo(dst)
}

// Room is what has to be set aside for the whole message, in bytes. It is an
// estimate that is exact enough for anything but errors.
func (m *Message) Room() int {
	if m.Text != nil {
		return len(m.Text)
	}
	const frame = 56 // of the longest kind, a request
	return frame + len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result)
}

// Notification is a message that expects no answer. params is raw JSON; nil: none.
func Notification(method string, params []byte) Message {
	return Message{Message: jsonrpc.Message{Method: method, Params: params}}
}

// Question is a request to the client. params is raw JSON; nil: none.
func Question(id jsonrpc.ID, method string, params []byte) Message {
	return Message{Message: jsonrpc.Message{ID: id, Method: method, Params: params}}
}

// Result is the response to the request id. result is raw JSON; nil stands for {}.
func Result(id jsonrpc.ID, result []byte) Message {
	return Message{Message: jsonrpc.Message{ID: id, Result: result}}
}

// Failure is the response to the request id that says what went wrong.
func Failure(id jsonrpc.ID, err *jsonrpc.Error) Message {
	return Message{Message: jsonrpc.Message{ID: id, Error: err}}
}

// Request is a client's request with what is asked about it again and again, read
// once. The facts are raw JSON and alias the params; nil: there is no such member.
type Request struct {
	jsonrpc.Message
	Name          []byte // of the tool or prompt, where the method has one (mcp.HasName): a string
	URI           []byte // of the resource, where the method has one (mcp.HasURI): a string
	Level         []byte // of logging/setLevel
	Task          []byte // wish to run as a task (G.2)
	Meta          []byte // the whole member _meta
	ProgressToken []byte // in _meta: a string or a number, 0 included (P-7)

	// Link is the request's place among those of its connection, the next of which begins when this one passes: once
	// it is written, has taken effect, or waits for what the next one need not wait for. Where Serve returns, it passes at
	// the latest, unless somebody keeps it. nil: there is no order.
	Link *inorder.Link
}

// NewRequest reads the facts of a request that was parsed.
func NewRequest(msg jsonrpc.Message) Request {
	r := Request{Message: msg}
	for name, value := range rawjson.Members(msg.Params) {
		switch string(name) {
		case "name":
			r.Name = ofText(mcp.HasName(msg.Method), value)
		case "uri":
			r.URI = ofText(mcp.HasURI(msg.Method), value)
		case "level":
			r.Level = value
		case "task":
			if rawjson.KindOf(value) != rawjson.Null { // as some write what they leave out
				r.Task = value
			}
		case "_meta":
			r.Meta = value
			r.ProgressToken = tokenIn(value)
		}
	}
	return r
}

// ProgressTokenOf returns the progress token that params ask with, nil: none.
func ProgressTokenOf(params []byte) []byte { return tokenIn(rawjson.Get(params, "_meta")) }

// ofText returns a string that is what it is taken for, and nil for all else.
func ofText(is bool, value []byte) []byte {
	if !is || rawjson.KindOf(value) != rawjson.String {
		return nil
	}
	return value
}

// NameIn returns the raw name of the tool or prompt that a request is about, nil: there is none.
func NameIn(method string, params []byte) []byte {
	return ofText(mcp.HasName(method), rawjson.Get(params, "name"))
}

// Likeness is a number that requests share which are the same call, however their params are
// spelled, of the same person among those behind a principal (hop.Person), in every replica of the
// bridge; others share it only by chance or on purpose.
func Likeness(r *jsonrpc.Message, person string) uint64 {
	params := rawjson.Apply(nil, r.Params, rawjson.Edit{Name: "_meta"}) // which differs from request to request
	return rawjson.Sum(fmt.Appendf(nil, `["%x","%x",%s]`, r.Method, person, params))
}

func tokenIn(meta []byte) []byte {
	token := rawjson.Get(meta, "progressToken")
	switch rawjson.KindOf(token) {
	case rawjson.String, rawjson.Number:
		return token
	}
	return nil
}

// IsProgress reports whether the message is progress of a request.
func (m *Message) IsProgress() bool { return m.Method == mcp.NotificationProgress }
