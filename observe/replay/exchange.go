package replay

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/rawjson"
)

// Exchange is a request to the server as it was recorded, and what came back.
type Exchange struct {
	Mount         string
	Session, Call uint64
	Request       jsonrpc.Message
	Notifications []jsonrpc.Message
	Answer        *jsonrpc.Message // nil: none was recorded
	Failure       string           // why there is none, in the bridge's own words
}

// name says what the request asked for.
func (x *Exchange) name() string {
	if name, ok := rawjson.Name(rawjson.Get(x.Request.Params, "name")); ok && mcp.HasName(x.Request.Method) {
		return x.Request.Method + " " + name
	}
	return x.Request.Method
}

// Exchanges returns the upstream half of a recording, in the order of the requests.
// Subscriptions are not among them: they have no answer to compare.
func Exchanges(lines []record.Line) ([]*Exchange, error) {
	var all []*Exchange
	open := map[string]*Exchange{} // by what ties a response to its request
	for i := range lines {
		l := &lines[i]
		if l.Hop != record.Up {
			continue
		}
		var msg jsonrpc.Message
		if len(l.Message) > 0 {
			var err error
			if msg, err = jsonrpc.Parse(l.Message); err != nil {
				return nil, fmt.Errorf("message %d of the recording: %w", i+1, err)
			}
		}
		key := tie(l, &msg)
		if l.Kind == "request" && msg.Method != mcp.MethodListen {
			x := &Exchange{Mount: l.Mount, Session: l.Session, Call: l.Call, Request: msg}
			all, open[key] = append(all, x), x
			continue
		}
		x := open[key]
		if x == nil {
			continue
		}
		x.take(l, msg)
	}
	return all, nil
}

// tie names the exchange that a line belongs to: by HTTP where that was recorded, else
// by the call and its round.
func tie(l *record.Line, msg *jsonrpc.Message) string {
	switch {
	case l.HTTP != nil:
		return "http " + strconv.Itoa(l.HTTP.Exchange)
	case l.Call == 0 && len(msg.ID) > 0:
		return "id " + string(msg.ID)
	}
	return fmt.Sprint(l.Session, " ", l.Call, " ", l.Round)
}

func (x *Exchange) take(l *record.Line, msg jsonrpc.Message) {
	switch {
	case l.Kind == "notification":
		x.Notifications = append(x.Notifications, msg)
	case l.Kind == "response", l.Kind == "error":
		if x.Failure = l.Status; len(l.Message) > 0 {
			x.Answer, x.Failure = &msg, ""
		}
	}
}

// concrete makes values of the placeholders of a recording without payloads, so that a
// peer finds the kinds that it expects. What was a text stays the placeholder.
func concrete(v []byte) []byte {
	v = bytes.ReplaceAll(v, []byte(`"number()"`), []byte("0"))
	return bytes.ReplaceAll(v, []byte(`"boolean()"`), []byte("false"))
}

// standIns puts what a server gave now where a recording has names of states.
type standIns map[string][]byte

// learn notes which state now stands for a name.
func (s standIns) learn(recorded, now []byte) {
	name, state := rawjson.Get(recorded, "requestState"), rawjson.Get(now, "requestState")
	if name != nil && state != nil {
		s[string(name)] = bytes.Clone(state)
	}
}

// apply returns params with the states of today.
func (s standIns) apply(params []byte) []byte {
	name := rawjson.Get(params, "requestState")
	if state, ok := s[string(name)]; ok {
		return rawjson.Apply(nil, params, rawjson.Edit{Name: "requestState", Value: state})
	}
	return params
}

// placeholder is the kind in a redacted value; "" for anything else.
func placeholder(v []byte) string {
	text, ok := rawjson.Text(v)
	if !ok {
		return ""
	}
	for _, kind := range []string{"string(", "state("} {
		if strings.HasPrefix(text, kind) {
			return kind
		}
	}
	return ""
}
