package channel

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// ErrLapsed ends a connection that can no longer act for anybody.
var ErrLapsed = errors.New("the credentials of this connection are no longer valid; connect again with new ones")

// lapse tells when the credentials that a WebSocket or an HTTP+SSE stream came with have had their time
// (E-34). Its client has no other way to bring new ones than another connection: messages beside a stream
// are of the principal that opened it (E-30).
// Requests under way were authorized when they began, so they may still end: answers to their questions
// and their cancellations count, and so does what is asked about tasks that last. Nothing else does.
//
// Nobody's credentials come to be good again, though a key may be published again that was missing for a while: the client
// was told to connect anew, and its session hears nothing of its server any more.
type lapse struct {
	matters bool
	refused atomic.Bool // by the upstream, with 401
	term    downstream.Term
	past    atomic.Bool // the term was seen to be over, for good
}

// note takes the upstream's refusal of a call that carried the credentials.
func (l *lapse) note(auth string, r *downstream.Refusal) {
	if auth != "" && r.Status == http.StatusUnauthorized {
		l.refused.Store(true)
	}
}

// over reports whether the connection is to end as soon as it may.
func (l *lapse) over() bool { return l.matters && l.refused.Load() || l.expired() }

// expired reports whether nothing may begin any more. What the server has refused it goes on judging
// by itself: it may take the same credentials for something else.
func (l *lapse) expired() bool {
	if l.matters && l.term.Over() {
		l.past.Store(true)
	}
	return l.past.Load()
}

// lapsing is the part of a connection that ends with its credentials. It has no state of its own.
type lapsing struct{ *Channel }

// mayBeginLocked refuses a request of which nobody knows that its client may still make it.
func (c lapsing) mayBeginLocked(msg *jsonrpc.Message, own bool) *jsonrpc.Error {
	if own || !c.lapse.expired() || downstream.AboutTasks(msg.Method) && c.lastsLocked() {
		return nil
	}
	return fault.Internal(ErrLapsed.Error())
}

// look ends what only listens when the credentials have had their time, and reports whether the
// connection is to be ended. What began meanwhile it ends the next time.
func (c lapsing) look() (over bool) {
	if !c.lapse.over() {
		return false
	}
	c.in.Lock()
	conv, listens := c.conv, c.listensLocked()
	c.in.Unlock()
	for _, out := range listens {
		out.cancel(ErrLapsed)
	}
	if conv != nil && c.lapse.expired() {
		conv.StopListening()
	}
	c.in.Lock()
	defer c.in.Unlock()
	return len(c.inFlight) == 0 && !c.busyLocked()
}

// listensLocked returns the requests that never end by themselves.
func (c lapsing) listensLocked() (all []*reply) {
	for _, out := range c.inFlight {
		if out.listens && out.cancel != nil {
			all = append(all, out)
		}
	}
	return all
}
