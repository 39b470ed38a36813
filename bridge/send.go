package bridge

import (
	"errors"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// roundTrip makes an upstream request for a call. It returns its outcome as an event,
// and the answer that the event is part of, if there is one.
type roundTrip func(*call) (mrtr.Event, *upstream.Answer)

// sendRound sends the round in flight and returns its outcome as an event.
func sendRound(k *call) (mrtr.Event, *upstream.Answer) {
	r := borrowRound(k)
	defer r.giveBack()
	return r.send()
}

func (k *round) send() (mrtr.Event, *upstream.Answer) {
	ctx := k.build()
	answer, err := k.conv.b.opt.Upstream.Do(ctx, &k.up, k.hear)
	ctx.cancel()
	if err == nil {
		k.conv.b.listens.Alive()
	}
	switch {
	case err != nil:
		return k.broke(err), nil
	case answer.Error != nil:
		return mrtr.Failed(answer.Error), answer
	}
	k.accepted()
	return mrtr.Result(answer.Result, answer.ResultType()), answer
}

// accepted tells that the upstream takes the credentials of the call (H-6).
func (k *round) accepted() {
	k.mu.Lock()
	accepted := k.caller.Accepted
	k.caller.Accepted = nil
	k.mu.Unlock()
	if accepted != nil {
		accepted()
	}
}

// build makes the upstream request of this round (D.4): the client's params,
// unchanged in every round (D-I2), plus what this round adds.
func (k *round) build() *roundContext {
	k.mu.Lock()
	defer k.mu.Unlock()
	env := translate.Envelope{
		Method:         k.flow.Method,
		Version:        k.conv.server.Version,
		ClientInfo:     k.conv.clientInfo,
		Capabilities:   k.flow.Capabilities,
		LogLevel:       k.flow.Level,
		InputResponses: k.flow.InputResponses(),
		RequestState:   k.flow.RequestState,
	}
	if k.flow.Progress.Token != nil {
		k.token = upstreamToken(k.serial, k.flow.Round)
		env.ProgressToken = k.token
	}
	k.params = translate.Params(k.params[:0], k.flow.Params, &env)
	k.up = upstreamCall(k.call, k.flow.Method, k.params)
	k.up.Idle = k.idle
	return k.ctx
}

// upstreamCall addresses a request with the call's latest credentials (H-2).
func upstreamCall(k *call, method string, params []byte) upstream.Call {
	return upstream.Call{
		Method:        method,
		Params:        params,
		Authorization: k.caller.Authorization,
		Principal:     k.conv.b.seenAs(k.caller.Principal),
		Header:        k.caller.Header,
		Held:          &k.held,
		Origin:        k.out,
	}
}

// broke is the event of a round that failed, which says whether it may be sent again
// (D-15).
func (k *round) broke(err error) mrtr.Event {
	failure, ok := errors.AsType[*upstream.Failure](err)
	switch {
	case !ok:
	case failure.Cause == upstream.Busy && failure.RetryAfter > 0:
		return mrtr.Busy(err, failure.RetryAfter)
	case failure.Cause != upstream.Lost && failure.Cause != upstream.Unreachable:
	case !failure.Sent:
		return mrtr.Unsent(err)
	case failure.Cause == upstream.Lost && repeatable(k.call):
		return mrtr.Lost(err)
	}
	return mrtr.Failed(err)
}

// repeatable reports whether sending the round twice does no more than sending
// it once: by the method, or by what the tool's own hints promise (Q8).
func repeatable(k *call) bool {
	if k.flow.Repeatable {
		return true // another process knew
	}
	if k.flow.Method == mcp.MethodToolsCall {
		return k.conv.b.catalog.Tool(k.conv.principal, k.name).Repeatable
	}
	return mcp.IsReadOnly(k.flow.Method)
}
