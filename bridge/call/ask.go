package call

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// askLocked puts input requests to the client. Every entry of the round is
// translated before the first is sent, so that a round that this client's version
// cannot express has no side effects (C-33). Entries that are settled without
// asking come back as events.
func (k *asker) askLocked(inputs []*mrtr.Input) []mrtr.Event {
	if len(inputs) == 0 {
		return nil
	}
	if len(k.flow.Inputs) > 1 {
		if err := k.expressibleLocked(); err != nil {
			return []mrtr.Event{mrtr.Failed(err)}
		}
	}
	var settled []mrtr.Event
	var space [1]question
	questions := space[:0]
	for _, in := range inputs {
		if k.elsewhere(in) {
			k.outbox.addLocked(effect{do: mrtr.Ask, inquiry: in.InputRequest})
			continue
		}
		q, err := k.question(in, k.client.Driver.Replica.QuestionID(), mintUUID, k.held.Work())
		if unasked, ok := errors.AsType[*translate.Unexpressible](err); ok && unasked.Answer != nil {
			settled = append(settled, mrtr.Answered(in.Key, unasked.Answer))
			continue
		}
		if err != nil {
			return []mrtr.Event{mrtr.Failed(inexpressible(in, err))}
		}
		questions = append(questions, q)
	}
	for i := range questions {
		k.putLocked(&questions[i])
	}
	return settled
}

// putLocked puts a question to the client. It is registered first and sent second: an
// answer always finds it.
func (k *asker) putLocked(q *question) {
	if k.flow.Home.Stream == 0 {
		k.flow.Step(mrtr.Housed(mrtr.Address(k.out.Address())), mrtr.Moment{})
	}
	k.flow.Step(mrtr.Asked(q.key, string(q.msg.ID), q.elicitation), mrtr.Moment{})
	k.client.Tables.Await(k.Call, q.msg.ID, q.key, false)
	k.outbox.addLocked(effect{do: mrtr.Tell, msg: q.msg, question: true})
}

// remindLocked puts a question to the client again, if it is open.
func (k *asker) remindLocked(key string) {
	in := k.flow.Input(key)
	if k.flow.Over() || in == nil || in.Response != nil || in.ServerRequestID == "" {
		return
	}
	q, err := k.question(in, jsonrpc.ID(in.ServerRequestID), func() string { return in.ElicitationID }, k.held.Due())
	if err != nil {
		return // it has been asked, so this is none
	}
	e := effect{do: mrtr.Tell, msg: q.msg, question: true}
	if k.saving.to != nil {
		e.checkpoint = k.saving.encodeLocked()
		e.checkpoint.Message, e.checkpoint.Over = &q.msg, k.saving.isOver
	}
	k.outbox.addLocked(e)
}

// question is a server request that is about to leave.
type question struct {
	key         string // of the input request
	msg         downstream.Message
	elicitation string // elicitationId that it carries; mostly empty
}

// question builds the legacy request for in (C.4 to C.8) under an id. mint makes the elicitationId if it
// takes one and the server gave it none.
func (k *asker) question(in *mrtr.Input, id jsonrpc.ID, mint func() string, held translate.Held) (q question, err error) {
	params, err := k.express(in, held)
	if err != nil {
		return q, err
	}
	if in.Method == mcp.MethodElicitationCreate && in.Mode() == "url" {
		params, q.elicitation = mrtr.Identify(params, mint)
	}
	q.key, q.msg = in.Key, downstream.Question(id, in.Method, params)
	return q, nil
}

// express returns the params of the question that in is to the client. What they take is charged to held.
func (k *asker) express(in *mrtr.Input, held translate.Held) ([]byte, error) {
	rules := *k.client.Rules
	rules.Held = held
	return rules.InputRequest(in.Method, in.Params, k.declared)
}

// expressibleLocked reports the first entry of the round that the client's version
// has no words for, unless it can be answered without asking.
func (k *asker) expressibleLocked() error {
	return k.flow.Judge(func(in *mrtr.Input) (judged bool, err error) {
		if k.elsewhere(in) {
			return false, nil // which may change
		}
		_, err = k.express(in, k.held.Work())
		if unasked, ok := errors.AsType[*translate.Unexpressible](err); ok && unasked.Answer != nil {
			err = nil
		}
		if err != nil {
			return false, inexpressible(in, err)
		}
		return true, nil
	})
}

// inexpressible ends a call because of a question that InputRequest refused.
func inexpressible(in *mrtr.Input, err error) error {
	if budget.Short(err) {
		return err
	}
	abort := &mrtr.Abort{Key: in.Key, Method: in.Method, Reason: err.Error(), Rule: "C-33", Unasked: true}
	if unasked, ok := errors.AsType[*translate.Unexpressible](err); ok && unasked.Older {
		abort.Rule = ""
	}
	return abort
}

// withdrawLocked tells the client that questions are no longer wanted (C-35), and
// no longer counts on a client for what it has let time out (F.3).
func (k *asker) withdrawLocked(act *mrtr.Action) {
	for _, in := range act.Withdraw {
		if in.ServerRequestID == "" {
			reporter{k.Call}.reportTakenBackLocked(in, act)
			k.outbox.addLocked(effect{do: mrtr.Update, inquiry: in.InputRequest})
			continue // asked elsewhere, or never sent
		}
		k.client.Tables.Drop(jsonrpc.ID(in.ServerRequestID))
		reporter{k.Call}.reportWithdrawnLocked(in, act)
		if !k.saving.unsaved && in.ServerRequestID != k.saving.refused {
			notice := cancelledNotice(jsonrpc.ID(in.ServerRequestID), "the request that needed it is over")
			k.outbox.addLocked(effect{do: mrtr.Tell, msg: notice, withdraws: true})
		}
	}
	if k.flow.Hurry > 0 {
		return // which says little of a client: people take longer than that
	}
	if len(act.Ignored) > 0 && k.silences < math.MaxUint8 {
		k.silences++
	}
	for _, in := range act.Ignored {
		if in.ServerRequestID == "" {
			continue
		}
		k.sessionLocked().Distrust(in.Kind(), restOver*k.client.Driver.Flows.ServerRequest)
	}
}

// tellLocked tells the client that URL interactions are over (C-32), and that the
// call is alive.
func (k *asker) tellLocked(act *mrtr.Action) {
	for _, id := range act.Completed {
		params := append(rawjson.AppendQuote([]byte(`{"elicitationId":`), id), '}')
		k.outbox.sayLocked(downstream.Notification(mcp.NotificationElicitationComplete, params))
	}
	if act.Say != "" {
		k.outbox.sayLocked(k.alive(act))
	}
}

// answered feeds the client's answer to the flow as an input response. It returns false
// when another process goes on with the call, for which the answer is then.
func (k *asker) answered(caller downstream.Caller, key string, msg jsonrpc.Message) (taken bool) {
	defer k.survive()
	in, ok := k.asked(caller, key, &msg)
	if !ok {
		return true
	}
	if msg.Error == nil || msg.Error.Code != jsonrpc.CodeMethodNotFound {
		k.session().Trust(in.Kind())
	}
	if msg.Error != nil {
		return k.answer(mrtr.Unanswered(key, k.declined(&in, msg.Error)))
	}
	response, err := k.client.Rules.InputResponse(in.Method, in.Params, msg.Result)
	if err != nil {
		bad, ok := errors.AsType[*translate.BadAnswer](err)
		return k.answer(mrtr.Unusable(key, "the client's answer to "+in.Method+" is not usable: "+err.Error(), ok && bad.AskAgain))
	}
	return k.answer(mrtr.Answered(key, response))
}

// asked returns what was asked under key, and notes who answers: with the newest
// credentials of the same principal (H-2).
func (k *asker) asked(caller downstream.Caller, key string, msg *jsonrpc.Message) (req mrtr.InputRequest, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	in := k.flow.Input(key)
	if in == nil {
		return req, false
	}
	caller.Paid = nil // which is over with the message
	bearer{k.Call}.actsLocked(caller)
	reporter{k.Call}.reportAnswerLocked(in, msg)
	return in.InputRequest, true
}

// declined words a client's error for whoever reads the call's failure (F.3).
func (k *asker) declined(in *mrtr.InputRequest, e *jsonrpc.Error) string {
	switch e.Code {
	case codeUserRejected:
		return in.Method + " was rejected by the user"
	case jsonrpc.CodeMethodNotFound:
		k.session().Distrust(in.Kind(), ForGood)
		return "the client declared support for " + in.Method + " but does not implement it"
	}
	return "the client could not serve " + in.Method + ": " + fault.Clip(e.Message)
}

// codeUserRejected is what the legacy sampling pages use for a user's refusal.
const codeUserRejected = -1

// alive is progress that says what act wants said and counts nothing.
func (k *asker) alive(act *mrtr.Action) downstream.Message {
	message := fault.Clip(act.Say)
	if !k.client.Rules.Version.AtLeast(mcp.V20250326) {
		message = "" // C-5
	}
	return downstream.Notification(mcp.NotificationProgress, k.flow.Progress.Params(act.Count, message))
}

// mintUUID returns a random UUID (version 4).
func mintUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// cancelledNotice takes a question to the client back. The reason needs no escaping.
func cancelledNotice(id jsonrpc.ID, reason string) downstream.Message {
	return downstream.Notification(mcp.NotificationCancelled, []byte(`{"requestId":`+string(id)+`,"reason":"`+reason+`"}`))
}

// reach says who can answer for this call.
func (k *asker) reach() ask.Reach {
	return ask.Reach{Person: k.client.Session.Repeats() != nil, Roots: k.roots != nil}
}
