package call

import (
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// A client that opens addresses, and lacks only what a question needs, is sent the
// page's link as a URL elicitation: an invitation. Its answer says whether the
// person goes there; what they answer there is the answer to the question.

// invites reports whether the client can be sent a link to open.
func (k *asker) invites() bool {
	return k.repeatable != nil && rawjson.Has(rawjson.Get(k.declared, "elicitation"), "url")
}

// invitationWords are what a person reads who is asked to open the page.
const invitationWords = "A question has to be answered before this can go on. Your program cannot show it, so it waits for you on a page."

// invite returns the invitation to the page under link, where key is asked.
func (k *asker) invite(key, link string) again.Question {
	id, elicitation := k.client.Driver.Replica.QuestionID(), mintUUID()
	params := rawjson.Apply(nil, []byte(`{"mode":"url"}`),
		rawjson.Edit{Name: "message", Value: rawjson.AppendQuote(nil, invitationWords)},
		rawjson.Edit{Name: "url", Value: rawjson.AppendQuote(nil, link)},
		rawjson.Edit{Name: "elicitationId", Value: rawjson.AppendQuote(nil, elicitation)})
	k.client.Tables.Await(k.Call, id, key, true)
	return again.Question{Key: key, Link: link, Elicitation: elicitation, Msg: downstream.Question(id, mcp.MethodElicitationCreate, params)}
}

// invited takes the client's answer to an invitation. An error says nothing of the
// person: the link stays open, and the call's result will name it.
func (k *asker) invited(key string, msg *jsonrpc.Message) {
	if msg.Error != nil {
		return
	}
	switch action, _ := rawjson.Text(rawjson.Get(msg.Result, "action")); action {
	case "accept":
		k.repeatable.Met(key)
	case "decline", "cancel":
		k.mu.Lock()
		ticket := k.tickets[key]
		k.mu.Unlock()
		if ticket != nil {
			ticket.Refuse(action == "cancel")
		}
	}
}

// closing is what a client that was invited is told when the question is settled.
func (k *asker) closing(q *again.Question) []downstream.Message {
	if q.Elicitation == "" {
		return nil
	}
	k.client.Tables.Drop(q.Msg.ID)
	said := []downstream.Message{downstream.Notification(mcp.NotificationElicitationComplete,
		append(rawjson.AppendQuote([]byte(`{"elicitationId":`), q.Elicitation), '}'))}
	if !q.Met {
		said = append(said, cancelledNotice(q.Msg.ID, "the question was settled"))
	}
	return said
}
