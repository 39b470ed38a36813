package bridge

import (
	"crypto/rand"
	"fmt"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
)

// openQuestion is a server request that waits for its answer: whose it is, and what it
// answers.
type openQuestion struct {
	id   jsonrpc.ID
	key  string
	call *call
	// invites says that it asks the client to open the page where key is asked.
	invites bool
	next    *openQuestion
}

// questions holds a session's open server requests. There is rarely more than
// one, for which a map would need ten times the memory of a list.
type questions struct{ first *openQuestion }

func (qs *questions) add(id jsonrpc.ID, key string, k *call, invites bool) {
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

// The breaker keeps calls from asking in vain: clients declare capabilities that
// they do not serve (F.3). What it has switched off is not declared upstream, so
// that the server can take another path. A client that has answered once is
// trusted: when it does not do so again, a person may just be away.

// kind is one of the things that servers ask clients for.
type kind int

const (
	elicitation kind = iota
	sampling
	roots
	kinds
)

var capabilityOf = [kinds]string{"elicitation", "sampling", "roots"}

func kindOf(method string) kind {
	switch method {
	case mcp.MethodElicitationCreate:
		return elicitation
	case mcp.MethodSamplingCreateMessage:
		return sampling
	}
	return roots
}

func questionKind(in *mrtr.Input) observe.Kind {
	switch {
	case kindOf(in.Method) == sampling:
		return observe.Sampling
	case kindOf(in.Method) == roots:
		return observe.Roots
	case in.Mode() == "url":
		return observe.URL
	}
	return observe.Form
}
