package relay

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// Receive implements Inbox.
func (c *conversation) Receive(text []byte) (response jsonrpc.ID) {
	if jsonrpc.IsBatch(text) { // of a server of 2025-03-26
		parts, _ := jsonrpc.Split(text, maxBatch)
		if len(parts) > maxBatch {
			c.Ended(errors.New("the server sent a batch of more than " + strconv.Itoa(maxBatch) + " messages"))
			return ""
		}
		for _, part := range parts {
			response = cmp.Or(c.receive(part), response)
		}
		return response
	}
	return c.receive(text)
}

func (c *conversation) receive(text []byte) (response jsonrpc.ID) {
	msg, err := jsonrpc.Parse(text)
	if err != nil || msg.Kind() == jsonrpc.Response {
		if id := c.spelled(msg.ID); id != msg.ID {
			msg.ID, text = id, nil // it is framed anew
		}
	}
	switch {
	case err != nil && msg.ID != "":
		c.Fail(msg.ID, errors.New("the server sent a malformed message"))
		return msg.ID
	case err != nil:
		c.relay.noise.Warn().Int("bytes", len(text)).Msg("the server sent what is no message; skipped")
	case msg.Kind() == jsonrpc.Response:
		if k := c.take(msg.ID); k != nil {
			k.out.Finish(downstream.Message{Message: msg, Text: text})
		}
		return msg.ID
	case c.deaf.Load() && announces(msg.Method):
	default:
		c.deliver(&msg, text)
	}
	return ""
}

// spelled returns the id of a call as its client has it: servers write a string with other escapes, or with none.
func (c *conversation) spelled(id jsonrpc.ID) jsonrpc.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] != nil {
		return id
	}
	said, ok := rawjson.Name([]byte(id))
	if !ok {
		return id
	}
	for own := range c.calls {
		if name, ok := rawjson.Name([]byte(own)); ok && name == said {
			return own
		}
	}
	return id
}

// deliver hands a request or notification of the server to the client: on the
// stream of the call that it belongs to, as far as that shows, or on its own.
func (c *conversation) deliver(msg *jsonrpc.Message, text []byte) {
	if msg.Method == mcp.NotificationCancelled {
		c.recalled(jsonrpc.ID(rawjson.Get(msg.Params, "requestId")))
	}
	key, out := c.place(msg)
	if msg.Kind() == jsonrpc.Request || out != nil {
		c.begun(msg, out)
	}
	switch {
	case out != nil:
		c.said(msg, out)
		out.Send(downstream.Message{Message: *msg, Text: text})
	case downstream.Reaches(c.push):
		c.push.Push(key, downstream.Message{Message: *msg, Text: bytes.Clone(text)})
	case msg.Kind() == jsonrpc.Request:
		c.decline(msg.ID)
	}
}

// announces reports whether a notification is of no call.
func announces(method string) bool {
	return mcp.IsListChanged(method) || method == mcp.NotificationResourcesUpdated
}

// Bounds of what is remembered of the questions of a call.
const (
	maxQuestions  = 64
	maxQuestionID = 256 // bytes
)

// said notes which call a message came to.
func (c *conversation) said(msg *jsonrpc.Message, out downstream.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.out == out {
			k.noteLocked(msg)
		}
	}
}

// noteLocked notes what the server says on the stream of a call.
func (k *pendingCall) noteLocked(msg *jsonrpc.Message) {
	k.sign = time.Now()
	if msg.Kind() != jsonrpc.Request || len(msg.ID) > maxQuestionID {
		return
	}
	k.questions = append(k.questions[max(0, len(k.questions)-maxQuestions+1):], msg.ID)
	mode, _ := rawjson.Text(rawjson.Get(msg.Params, "mode"))
	if kind := observe.KindOf(msg.Method, mode); kind < observe.Kinds {
		k.open = append(k.open[max(0, len(k.open)-maxQuestions+1):], question{msg.ID, kind, k.sign})
	}
}

// recalled notes that the server waits for no answer to a question any more. One that still comes, and gets lost, is no
// end of a call.
func (c *conversation) recalled(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		k.closeLocked(id)
		k.questions = slices.DeleteFunc(k.questions, func(q jsonrpc.ID) bool { return q == id })
	}
}

// decline answers a question that nobody can be asked.
func (c *conversation) decline(id jsonrpc.ID) {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	if line != nil { // else not even initialize was sent
		e := failed("the client cannot be asked now")
		msg := jsonrpc.Message{ID: id, Error: e}
		_ = line.Send(downstream.Caller{Principal: c.principal}, &msg, msg.AppendTo(nil))
	}
}

// place finds where a message goes: to a call, or under a key.
func (c *conversation) place(msg *jsonrpc.Message) (key string, out downstream.Reply) {
	switch {
	case mcp.IsListChanged(msg.Method):
		return msg.Method, nil
	case msg.Method == mcp.NotificationResourcesUpdated:
		return msg.Method + " " + string(rawjson.Get(msg.Params, "uri")), nil
	}
	token := []byte(nil)
	if msg.Method == mcp.NotificationProgress {
		token = rawjson.Get(msg.Params, "progressToken")
	}
	key, calls := c.meant(token)
	if token != nil && len(calls) > 0 {
		return key, calls[0].out // nobody else's, whoever is there
	}
	return key, nearest(calls)
}

// meant are the calls that a message may belong to, the newest first, and its key should it
// belong to none. A nil token says nothing of the call.
func (c *conversation) meant(token []byte) (key string, calls []*pendingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.out.Interactive() && (token == nil || bytes.Equal(token, k.token)) {
			calls = append(calls, k)
		}
	}
	slices.SortFunc(calls, func(a, b *pendingCall) int { return cmp.Compare(b.number, a.number) })
	c.last++
	return "m" + strconv.FormatUint(c.last, 10), calls
}

// nearest is the first call whose client is there, else the first whose client may come back:
// a question to one that has left is never asked.
func nearest(calls []*pendingCall) downstream.Reply {
	for _, near := range []func(downstream.Reply) bool{downstream.Reply.Attached, downstream.Reply.Reachable} {
		for _, k := range calls {
			if near(k.out) {
				return k.out
			}
		}
	}
	return nil
}
