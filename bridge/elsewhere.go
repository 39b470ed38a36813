package bridge

import (
	"cmp"
	"crypto/rand"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// What a client cannot be asked is asked elsewhere, where the configuration says who
// answers (package ask). To the flow it makes no difference where an answer comes
// from: an inquiry is an effect like a question to the client, and its answer is the
// same event.

// asks returns who answers for the client; nil: nobody.
func (c *conversation) asks() *ask.Room { return c.b.opt.Ask }

// elsewhere reports whether the client itself cannot be asked for in, be it that it
// declared nothing of the kind or that its revision has no words for this one. Then
// somebody else can, for the round was checked against all that was declared (C-33).
func (k *asker) elsewhere(in *mrtr.Input) bool {
	room := k.conv.asks()
	return room != nil && (in.Missing(k.own) != "" || room.Answers(in.Method, k.reach()) && k.wordless(in))
}

// reach says who can answer for this call.
func (k *asker) reach() ask.Reach {
	return ask.Reach{Person: k.conv.comesBack(), Roots: k.roots != nil}
}

// wordless reports whether the client's revision, and no other, cannot express in.
func (k *asker) wordless(in *mrtr.Input) bool {
	_, err := k.conv.rules.InputRequest(in.Method, in.Params, k.own)
	unasked, ok := errors.AsType[*translate.Unexpressible](err)
	return ok && unasked.Older && unasked.Answer == nil
}

// inquire has an input request answered elsewhere.
func (k *asker) inquire(req *mrtr.InputRequest) {
	key, method, invites := req.Key, req.Method, k.invites() // req is the effect's, whose memory is used again
	ticket := k.conv.asks().Ask(ask.Inquiry{
		Method:   req.Method,
		Params:   req.Params,
		Tool:     k.subject(),
		Roots:    k.roots,
		Owner:    k.conv.owner(),
		Named:    k.conv.principal != "" || k.conv.stranger != "",
		Invites:  invites,
		Spent:    &k.conv.spent,
		Deadline: k.answerBy(),
		Answer: func(response []byte, why error) {
			q := k.settled(key) // before the person hears that it counts: the same call may come at once
			k.conv.b.background(func() { k.inquired(&q, key, method, response, why) })
		},
	})
	if !k.waits(key, ticket) {
		ticket.Withdraw()
		return
	}
	switch {
	case ticket.Link == "":
	case invites:
		k.kept.invite(k.invite(key, ticket.Link))
	case k.kept != nil:
		k.kept.linked(key, ticket.Link)
	default: // a task, whose client comes and asks how it goes
		k.drive(mrtr.Noted(pageWords + ticket.Link))
	}
}

// inquired takes the outcome of an inquiry.
func (k *asker) inquired(q *pendingQuestion, key, method string, response []byte, why error) {
	defer k.survive()
	k.sayClosed(q)
	if why != nil {
		k.answer(mrtr.Failed(&mrtr.Abort{Key: key, Method: method, Reason: "the server's question could not be answered: " + why.Error()}))
		return
	}
	k.answer(mrtr.Answered(key, response))
}

// settled notes that an inquiry is open no more; a zero question when it was not.
func (k *asker) settled(key string) (q pendingQuestion) {
	if k.kept != nil {
		q = k.kept.settled(key)
	}
	return q
}

// waits keeps the ticket of an inquiry, unless nobody waits for its answer any more.
func (k *asker) waits(key string, ticket ask.Ticket) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if in := k.flow.Input(key); k.flow.Over() || in == nil || in.Response != nil {
		return false
	}
	if k.tickets == nil {
		k.tickets = map[string]ask.Ticket{}
	}
	k.tickets[key] = ticket
	return true
}

// withdrawn takes an inquiry back.
func (k *asker) withdrawn(key string) {
	k.mu.Lock()
	ticket := k.tickets[key]
	delete(k.tickets, key)
	k.mu.Unlock()
	ticket.Withdraw()
	q := k.settled(key)
	for _, msg := range k.closing(&q) {
		k.out.Send(msg)
	}
}

func (k *asker) answerBy() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if by := k.flow.Clock.AnswerBy; !by.IsZero() && by.Before(k.flow.Clock.Deadline) {
		return by
	}
	return k.flow.Clock.Deadline
}

// owner names, for nobody to read, whose questions the conversation's are.
func (c *conversation) owner() string {
	if c.principal != "" || c.stranger != "" {
		return cmp.Or(c.principal, c.stranger)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nobody == "" {
		c.nobody = rand.Text()
	}
	return c.nobody
}

// subject is the name of what was called.
func (k *asker) subject() string {
	name, _ := rawjson.Text(k.name)
	return name
}
