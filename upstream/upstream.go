// Package upstream says how servers of revision 2026-07-28 are asked: one request, and its
// one outcome. Package streamable does so over Streamable HTTP, package stdio asks
// processes.
//
// It owns what they have in common: calls, answers, ids of requests, every way in which a
// request can fail, the probe, and reading lists page by page. It does not know
// sessions, flows, rounds or legacy clients: what a request says is decided by
// its caller, who also decides whether a failed request may be sent again. The
// only resends made below it are those of requests that the server refused before
// executing them (B-25, E-39), or of those that only read.
package upstream

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// Caller sends requests to one upstream. Implementations are safe for
// concurrent use.
type Caller interface {
	// Do sends one request under a fresh id (B-2) and returns its outcome.
	// notify, which may be nil, gets the interim notifications of this
	// response in order, on the calling goroutine; a message is valid only
	// during the call. Cancelling ctx cancels the request upstream (E-37); its
	// deadline is the request's time limit. The error is a *Failure.
	Do(ctx context.Context, call *Call, notify func(jsonrpc.Message)) (*Answer, error)
	// Listen opens subscriptions/listen and blocks until it ends. notify gets
	// every message of the subscription, the acknowledgment first. The result
	// is nil when the server ended it gracefully, a *jsonrpc.Error when it
	// refused, and a *Failure otherwise; a stream that just stops is a Failure
	// with cause Lost.
	Listen(ctx context.Context, call *Call, notify func(jsonrpc.Message)) error
	// Close ends everything that is still under way and frees connections or
	// the child process. It returns when nothing is left running.
	Close() error
}

// Call is one request to make. The client only reads it, so it may be shared
// by resends.
type Call struct {
	Method string
	// Params is the complete, valid params object including _meta.
	Params []byte
	// About is what Params say, of callers who have just written them: then nobody reads
	// it back. Zero: it is read.
	About About
	// Authorization is the value of that header for this call, unless the client
	// is configured to send another one, or none. HTTP only.
	Authorization string
	// Principal and Header select the tool schemas that apply (H-10).
	Principal string
	// Header has further HTTP headers, such as traceparent. Which of them are
	// sent is told by package hop (B-26, H-12).
	Header http.Header
	// Idle, which may be nil, is called on the calling goroutine before it
	// waits for more of the response, if notify was called since the last time.
	// A caller who passes notifications on can collect them until then. It is
	// not called between the last notification and the outcome.
	Idle func()
	// AsIs sends the version that the params declare, and no other after a refusal: the
	// request is a modern client's own. It may also be subscriptions/listen, whose
	// answer is what ends the subscription.
	AsIs bool
	// Held, which may be nil, is told how much of the response is held, and may refuse
	// more: then the request fails with cause NoMemory.
	Held Held
	// Account is charged with what waits for the server or the caller to be ready for it; nil:
	// that of the client that carries the call.
	Account *budget.Account
	// Tenant and Session are whose turn the request takes (package turns); empty: the bridge's own.
	Tenant  string
	Session any
	// Admitted, which may be nil, is called on the calling goroutine when it is the request's
	// turn, and told whether time has passed. With an error the request is not sent, and that is
	// its outcome.
	Admitted func(waited bool) error
	// Link is the place of what the call is for among what its client wrote (package inorder): it passes once the
	// request is on its way to the server, or has to wait for a turn. nil: there is no order.
	Link *inorder.Link
	// Origin is what the call is made for. Only those who observe the bridge read it.
	Origin any
}

// About is what the params of a request say: the version in _meta, and the raw name of the
// tool or prompt or the raw URI of the resource, if the method has one.
type About struct {
	Version string
	Name    []byte
}

// Held takes note of what is held of a response.
type Held interface {
	// Set says how many bytes are held now. They are told in coarse steps.
	Set(bytes int) error
}

// Owed is a Held that waits until there is memory for a response rather than refuse it.
type Owed interface {
	Held
	// TakeOver is Set for a response that is in memory already, and charged to paid until there is
	// room for it. Nothing is charged to paid afterwards.
	TakeOver(paid *budget.Hold, bytes int) error
}

// HeldStep is from what size on, and in what steps, a response is charged, in bytes.
const HeldStep = 64 << 10

// Charge tells of a response that came as a whole.
func Charge(held Held, bytes int) error {
	if held == nil || bytes < HeldStep {
		return nil
	}
	return held.Set(bytes)
}

// TakeOver is Charge for a response that has been charged to paid so far. Nothing is charged to that
// afterwards.
func TakeOver(held Held, paid *budget.Hold, bytes int) error {
	if owed, ok := held.(Owed); ok && bytes >= HeldStep {
		return owed.TakeOver(paid, bytes)
	}
	paid.Release()
	return Charge(held, bytes)
}

// lastID numbers the requests of the whole process, over all upstreams, so
// that the answer to an abandoned request can never match a later one (B-2).
var lastID atomic.Int64

const (
	// randomBits of an id are drawn, so that whoever can put a response on
	// somebody else's connection cannot know which id to put on it.
	randomBits = 32
	// countedBits of it count. Together they stay below 2^53, up to which every
	// JSON library keeps integers.
	countedBits = 20
)

// NextID returns the id of another request upstream.
func NextID() jsonrpc.ID {
	count := lastID.Add(1) & (1<<countedBits - 1)
	return jsonrpc.IntID(count<<randomBits | int64(rand.Uint32()))
}
