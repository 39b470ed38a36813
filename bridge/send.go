package bridge

import (
	"errors"
	"strconv"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
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
	if err := k.turn(ctx); err != nil {
		ctx.cancel()
		return mrtr.Failed(err), nil
	}
	defer k.conv.b.opt.Turns.Leave(k.who())
	k.own.end(observe.ToServer, k.flow.Round == 0) // later people had their time
	answer, err := k.conv.b.opt.Upstream.Do(ctx, &k.up, k.hear)
	ctx.cancel()
	k.own.begin()
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

// errLeft ends a call of a client that cannot hear of it any more.
var errLeft = errors.New("its client left while the call waited for its turn")

// turn waits until the call may take up the server. Whoever waited may have lost its
// client meanwhile: then nothing is executed for nobody.
func (k *round) turn(ctx *roundContext) error {
	waited, err := k.conv.b.opt.Turns.Enter(ctx, k.who())
	if !waited || err != nil {
		return err
	}
	k.conv.b.notices.queued.Warn().Msg("calls wait for their turn (limits.concurrency)")
	if !k.resent() && !k.out.Reachable() {
		k.conv.b.opt.Turns.Leave(k.who())
		return errLeft
	}
	return nil
}

// resent reports whether the server has had a request of this call before.
func (k *call) resent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.flow.Round > 0
}

// who is whose turn it is: the principal's, and among its sessions this one's. Requests
// without a session are all of the same.
func (k *call) who() turns.Who {
	if k.conv.server == catalog.Unknown {
		return turns.Who{Principal: k.flow.Principal}
	}
	return turns.Who{Principal: k.flow.Principal, Session: k.conv}
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

// upstreamToken mints the token of a round: clients of two sessions both use 1 (B-5).
func upstreamToken(serial uint64, round int) []byte {
	b := strconv.AppendUint([]byte(`"p`), serial, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(round), 10)
	return append(b, '"')
}
