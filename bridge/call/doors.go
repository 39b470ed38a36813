package call

import (
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
)

// What a session does to its calls.

// ID is that of the client's request.
func (k *Call) ID() jsonrpc.ID { return k.flow.ID }

// Hosted reports whether the call runs as a task of its client, whose own request is over.
func (k *Call) Hosted() bool { return k.task != nil }

// Answered takes the client's answer to a question under key; invites says that the
// question asked to open a page. It returns false when the answer is for another process, which goes on with
// the call.
func (k *Call) Answered(caller downstream.Caller, key string, invites bool, msg jsonrpc.Message) (taken bool) {
	if invites {
		k.asking.invited(key, &msg)
		return true
	}
	if k.task != nil {
		k.task.Answered(msg.ID)
	}
	if k.kept != nil {
		k.kept.Settled(string(msg.ID))
	}
	return k.asking.answered(caller, key, msg)
}

// Leave leaves a call that waits for its client, and is kept, to another process. It
// reports whether it has.
func (k *Call) Leave() bool { return k.saving.waitsElsewhere() }

// Refresh keeps a call that waits once more, in a store that may have lost it.
func (k *Call) Refresh() { k.saving.refresh() }

// Rest leaves a call that does nothing but wait for its client to the store, if it may.
func (k *Call) Rest(may func(downstream.Safe, time.Time) bool) {
	if due, ok := k.saving.restsUntil(); ok && may(k.saving.safe, due) {
		k.saving.rest()
	}
}

// Record returns what another process needs to go on with the call; nil when it is
// over, has yet to start or is a task, which lives with its handle.
func (k *Call) Record() []byte { return k.saving.record() }

// Sight describes the call as it stands; alive is false when it has ended. served has
// the kinds of questions that its client has answered, a bit each.
func (k *Call) Sight(served uint8) (flow observe.Flow, alive bool) { return reporter{k}.sight(served) }
