package bridge

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// ask puts input requests to the client and suspends the flow. The caller holds
// mu. Every entry of the round is translated before the first is sent, so that
// a round that this client's version cannot express has no side effects (C-33).
// Entries that are settled without asking come back as events.
func (k *call) ask(inputs []*mrtr.Input) []mrtr.Event {
	if len(k.flow.Inputs) > 1 {
		if err := k.expressible(); err != nil {
			return []mrtr.Event{mrtr.Failed(err)}
		}
	}
	var settled []mrtr.Event
	var messages []downstream.Message
	for _, in := range inputs {
		msg, err := k.serverRequest(in)
		if unasked, ok := errors.AsType[*translate.Unexpressible](err); ok && unasked.Answer != nil {
			settled = append(settled, mrtr.Answered(in.Key, unasked.Answer))
			continue
		}
		if err != nil {
			return []mrtr.Event{mrtr.Failed(inexpressible(in, err))}
		}
		messages = append(messages, msg)
	}
	now := time.Now()
	if k.flow.State == mrtr.Gathering {
		k.due = k.deadline
	}
	k.answerBy = now.Add(k.conv.b.limits.ServerRequest)
	if k.progress.token != nil {
		k.beat = now.Add(k.conv.b.limits.Heartbeat)
	}
	// Registered first, sent second: an answer always finds its question.
	k.conv.await(k, inputs)
	k.suspend()
	k.arm(now)
	for _, msg := range messages {
		k.out.Send(msg)
	}
	return settled
}

// serverRequest builds the legacy request for in (C.4 to C.8).
func (k *call) serverRequest(in *mrtr.Input) (msg downstream.Message, err error) {
	params, err := k.conv.rules.InputRequest(in.Method, in.Params, k.flow.Capabilities)
	if err != nil {
		return msg, err
	}
	if in.Method == mcp.MethodElicitationCreate && in.Mode() == "url" {
		params = in.Identify(params, mintUUID)
	}
	in.ServerRequestID = mintID()
	return downstream.Question(jsonrpc.ID(in.ServerRequestID), in.Method, params), nil
}

// expressible reports the first entry of the round that the client's version
// has no words for, unless it can be answered without asking.
func (k *call) expressible() error {
	for i := range k.flow.Inputs {
		in := &k.flow.Inputs[i]
		if in.Response != nil || in.ServerRequestID != "" {
			continue
		}
		_, err := k.conv.rules.InputRequest(in.Method, in.Params, k.flow.Capabilities)
		if unasked, ok := errors.AsType[*translate.Unexpressible](err); ok && unasked.Answer != nil {
			continue
		}
		if err != nil {
			return inexpressible(in, err)
		}
	}
	return nil
}

// inexpressible ends a call because of a question that InputRequest refused.
func inexpressible(in *mrtr.Input, err error) error {
	abort := &mrtr.Abort{Key: in.Key, Method: in.Method, Reason: err.Error(), Rule: "C-33", Unasked: true}
	if unasked, ok := errors.AsType[*translate.Unexpressible](err); ok && unasked.Older {
		abort.Rule = ""
	}
	return abort
}

// withdraw tells the client that questions are no longer wanted (C-35).
func (k *call) withdraw(inputs []*mrtr.Input) {
	for _, in := range inputs {
		if in.ServerRequestID == "" {
			continue // decided upon, never sent
		}
		k.conv.drop(jsonrpc.ID(in.ServerRequestID))
		params := append([]byte(`{"requestId":`), in.ServerRequestID...)
		params = append(params, `,"reason":"the request that needed it is over"}`...)
		k.out.Send(downstream.Notification(mcp.NotificationCancelled, params))
	}
}

// completed tells the client that URL interactions are over (C-32).
func (k *call) completed(elicitationIDs []string) {
	for _, id := range elicitationIDs {
		params := append(rawjson.AppendQuote([]byte(`{"elicitationId":`), id), '}')
		k.out.Send(downstream.Notification(mcp.NotificationElicitationComplete, params))
	}
}

// Answer implements downstream.Conversation. Late, duplicate and foreign answers
// find no question and are ignored (C.9).
func (c *conversation) Answer(caller downstream.Caller, msg jsonrpc.Message) {
	c.mu.Lock()
	q := c.questions.find(msg.ID)
	ok := q != nil && q.call.of(caller)
	if ok {
		c.questions.remove(msg.ID)
	}
	c.mu.Unlock()
	if !ok {
		return
	}
	if q.call.task != nil {
		q.call.task.answered(msg.ID)
	}
	q.call.answered(caller, q.key, msg)
}

// of reports whether caller may answer and cancel the call: it acts for whom the
// call was made, or for somebody where nobody was known (D-I11).
func (k *call) of(caller downstream.Caller) bool {
	return k.principal == caller.Principal || k.principal == ""
}

// answered feeds the client's answer to the flow as an input response.
func (k *call) answered(caller downstream.Caller, key string, msg jsonrpc.Message) {
	k.mu.Lock()
	in := k.flow.Input(key)
	if in == nil {
		k.mu.Unlock()
		return
	}
	method, params := in.Method, in.Params
	k.caller = caller // the newest credential of the same principal (H-2)
	k.reportAnswer(in, &msg)
	k.mu.Unlock()

	if msg.Error == nil || msg.Error.Code != jsonrpc.CodeMethodNotFound {
		k.conv.trust(kindOf(method))
	}
	if msg.Error != nil {
		k.resume(mrtr.Unanswered(key, k.declined(method, msg.Error)))
		return
	}
	response, err := k.conv.rules.InputResponse(method, params, msg.Result)
	if bad := (*translate.BadAnswer)(nil); errors.As(err, &bad) && bad.AskAgain && k.askAgain(key) {
		return
	}
	if err != nil {
		k.resume(mrtr.Unanswered(key, "the client's answer to "+method+" is not usable: "+err.Error()))
		return
	}
	k.resume(mrtr.Answered(key, response))
}

// askAgain repeats a question once, when the answer broke a rule that the
// question could not express (C-26).
func (k *call) askAgain(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	in := k.flow.Input(key)
	if in == nil || in.Response != nil || in.AskedAgain || k.flow.Over() {
		return false
	}
	in.AskedAgain = true
	k.ask([]*mrtr.Input{in})
	return true
}

// declined words a client's error for whoever reads the call's failure (F.3).
func (k *call) declined(method string, e *jsonrpc.Error) string {
	switch e.Code {
	case codeUserRejected:
		return method + " was rejected by the user"
	case jsonrpc.CodeMethodNotFound:
		k.conv.distrust(kindOf(method), forGood)
		return "the client declared support for " + method + " but does not implement it"
	}
	return "the client could not serve " + method + ": " + bounded(e.Message)
}

// codeUserRejected is what the legacy sampling pages use for a user's refusal.
const codeUserRejected = -1

// await registers questions, so that their answers are recognised.
func (c *conversation) await(k *call, inputs []*mrtr.Input) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range inputs {
		if in.ServerRequestID == "" {
			continue // settled without asking
		}
		c.questions.add(jsonrpc.ID(in.ServerRequestID), in.Key, k)
	}
}

func (c *conversation) drop(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.remove(id)
}

func (c *conversation) suspend(k *call) (evicted *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest, full := c.suspended.Add(k)
	if full && oldest != k {
		return oldest
	}
	return nil
}

func (c *conversation) resumed(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended.Remove(k)
}

// mintID returns a server request id as a JSON token: unguessable, so that no
// other session can answer it, and never used before (P-9).
func mintID() string { return `"b-` + rand.Text() + `"` }

// mintUUID returns a random UUID (version 4).
func mintUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// jitter varies d by a quarter either way.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + mathrand.N(d/2+1)
}
