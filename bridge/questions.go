package bridge

import (
	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// openQuestion is a server request that waits for its answer: whose it is, and what it
// answers.
type openQuestion struct {
	id   jsonrpc.ID
	key  string
	call *call.Call
	// invites says that it asks the client to open the page where key is asked.
	invites bool
	next    *openQuestion
}

// questions holds a session's open server requests. There is rarely more than
// one, for which a map would need ten times the memory of a list.
type questions struct{ first *openQuestion }

func (qs *questions) add(id jsonrpc.ID, key string, k *call.Call, invites bool) {
	qs.first = &openQuestion{id: id, key: key, call: k, invites: invites, next: qs.first}
}

// find returns the question that went out under id, or nil.
func (qs *questions) find(id jsonrpc.ID) *openQuestion {
	q := qs.first
	for q != nil && q.id != id {
		q = q.next
	}
	return q
}

// remove is idempotent.
func (qs *questions) remove(id jsonrpc.ID) {
	for at := &qs.first; *at != nil; at = &(*at).next {
		if (*at).id == id {
			*at = (*at).next
			return
		}
	}
}

func (qs *questions) len() (n int) {
	for q := qs.first; q != nil; q = q.next {
		n++
	}
	return n
}
