package bridge

import (
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

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
		k.kept.Invite(k.invite(key, ticket.Link))
	case k.kept != nil:
		k.kept.Linked(key, ticket.Link)
	default: // a task, whose client comes and asks how it goes
		k.Drive(mrtr.Noted(again.PageWords + ticket.Link))
	}
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
	k.carryOut(claimed)
}
