package call

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// lost reports whether an answer would be held back for a request that cannot come: the bridge stops,
// and takes none.
func (k *asker) lost() bool {
	stopping := k.client.Driver.Stopping
	return stopping != nil && stopping() && k.repeatable != nil && !k.repeatable.Waits()
}

// inquire has an input request answered elsewhere.
func (k *asker) inquire(req *mrtr.InputRequest) {
	key, method, invites := req.Key, req.Method, k.invites() // req is the effect's, whose memory is used again
	owner, named := k.owner()
	asked := &inquiry{kind: observe.KindOf(method, req.Mode())}
	asked.Ticket = k.client.Driver.Ask.Ask(ask.Inquiry{
		Method:   req.Method,
		Params:   req.Params,
		Tool:     k.subject(),
		Roots:    k.roots,
		Owner:    owner,
		Named:    named,
		Tenant:   k.places(),
		Account:  k.held.Account(),
		Invites:  invites,
		Spent:    k.session().Spent(),
		Deadline: k.answerBy(),
		Lost:     k.lost,
		Answer: func(response []byte, why error) {
			_ = k.held.Keep(len(response), nil, true) // what its page took was judged
			k.reportInquiry(asked, method, response, why)
			q := k.settled(key) // before the person hears that it counts: the same call may come at once
			k.client.Driver.Background(func() { k.inquired(&q, key, method, response, why) })
		},
	})
	if !k.waits(key, asked) {
		asked.Withdraw()
		return
	}
	switch link := asked.Link; {
	case link == "":
	case invites:
		k.repeatable.Invite(k.invite(key, link))
	case k.repeatable != nil:
		k.repeatable.Linked(key, link)
	default: // a task, whose client comes and asks how it goes
		words := again.PageWords + link
		if k.task != nil {
			k.task.Linked(key, words, again.Notice(k.client.Session, words))
		}
		k.Drive(mrtr.Noted(words))
	}
}

// owner names whose the call's questions are, and whether that is a user. A call of somebody who may know
// no more than its session's id stands alone: its page leads to nobody's questions but its own.
func (k *asker) owner() (name string, named bool) {
	k.mu.Lock()
	unproven := k.caller.Unproven
	k.mu.Unlock()
	if unproven {
		return "unproven " + k.Name() + " " + rand.Text(), false
	}
	return k.person(k.client.Session.Owner()), k.client.Principal != "" || k.client.Stranger != ""
}

// places is whose share of what is scarce the call takes.
func (k *asker) places() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.caller.Tenant, k.client.Tenant)
}

// inquired takes the outcome of an inquiry.
func (k *asker) inquired(q *again.Question, key, method string, response []byte, why error) {
	defer k.survive()
	k.sayClosed(q)
	if why != nil {
		k.answer(mrtr.Failed(&mrtr.Abort{Key: key, Method: method, Reason: "the server's question could not be answered: " + why.Error()}))
		return
	}
	k.answer(mrtr.Answered(key, response))
}

// reportInquiry tells who watches that an inquiry has its outcome. It takes the call's lock.
func (k *asker) reportInquiry(asked *inquiry, method string, response []byte, why error) {
	outcome := observe.ClientError
	switch {
	case why == nil:
		outcome = ends.OutcomeOf(method, response)
	case errors.Is(why, context.DeadlineExceeded):
		outcome = observe.Unanswered
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	asked.answered = true
	reporter{k.Call}.reportElsewhereLocked(asked, outcome)
}

// waits keeps the ticket of an inquiry, unless nobody waits for its answer any more.
func (k *asker) waits(key string, asked *inquiry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if in := k.flow.Input(key); k.flow.Over() || in == nil || in.Response != nil {
		reporter{k.Call}.reportElsewhereLocked(asked, observe.Withdrawn)
		return false
	}
	if k.tickets == nil {
		k.tickets = map[string]*inquiry{}
	}
	k.tickets[key] = asked
	return true
}

// withdrawn takes an inquiry back.
func (k *asker) withdrawn(key string) {
	k.mu.Lock()
	ticket := k.tickets[key]
	delete(k.tickets, key)
	k.mu.Unlock()
	if ticket != nil {
		ticket.Withdraw()
	}
	q := k.settled(key)
	for _, msg := range k.closing(&q) {
		k.Reply().Send(msg)
	}
}

func (k *asker) answerBy() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.flow.Clock.Unattended()
}

// subject is the name of what was called.
func (k *asker) subject() string {
	name, _ := rawjson.Text(k.name)
	return name
}

// sayClosed is closing, said in its turn.
func (k *asker) sayClosed(q *again.Question) {
	said := k.closing(q)
	if len(said) == 0 {
		return
	}
	k.mu.Lock()
	if !k.flow.Over() {
		for _, msg := range said {
			k.outbox.addLocked(effect{do: mrtr.Tell, msg: msg})
		}
	}
	claimed := k.outbox.claimLocked()
	k.mu.Unlock()
	speaker{k.Call}.carryOut(claimed)
}

// answer feeds an answer to the flow, once a request waits for what comes of it. It returns
// false when another process goes on with the call.
func (k *asker) answer(ev mrtr.Event) bool {
	if k.repeatable != nil && k.repeatable.Hold(ev) {
		k.repeatable.Answered()
		return true
	}
	k.Resume(ev)
	return !k.left.Load()
}

// elsewhere reports whether the client itself cannot be asked for in, be it that it
// declared nothing of the kind or that its revision has no words for this one. Then
// somebody else can, for the round was checked against all that was declared (C-33).
func (k *asker) elsewhere(in *mrtr.Input) bool {
	room := k.client.Driver.Ask
	return room != nil && (in.Missing(k.declared) != "" || room.Answers(in.Method, k.reach()) && k.wordless(in))
}

// wordless reports whether the client's revision, and no other, cannot express in.
func (k *asker) wordless(in *mrtr.Input) bool {
	_, err := k.client.Rules.InputRequest(in.Method, in.Params, k.declared)
	unasked, ok := errors.AsType[*translate.Unexpressible](err)
	return ok && unasked.Older && unasked.Answer == nil
}

// settled notes that an inquiry is open no more; a zero question when it was not.
func (k *asker) settled(key string) (q again.Question) {
	if k.task != nil {
		k.task.Answered(jsonrpc.ID(key))
	}
	if k.repeatable != nil {
		q = k.repeatable.Settled(key)
	}
	return q
}
