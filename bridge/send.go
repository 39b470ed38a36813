package bridge

import (
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// sendRound sends the round in flight and returns its outcome as an event.
func (k *call) sendRound() (mrtr.Event, *upstream.Answer) {
	r := borrowRound(k)
	defer r.giveBack()
	ctx := k.build(r)
	answer, err := k.conv.b.opt.Upstream.Do(ctx, &r.call, r.notify)
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
func (k *call) accepted() {
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
func (k *call) build(r *round) *roundContext {
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
	r.params = translate.Params(r.params[:0], k.flow.Params, &env)
	r.call = k.upstreamCall(k.flow.Method, r.params)
	r.call.Idle = r.idle
	return k.ctx
}

// upstreamCall addresses a request with the call's latest credentials (H-2).
func (k *call) upstreamCall(method string, params []byte) upstream.Call {
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
