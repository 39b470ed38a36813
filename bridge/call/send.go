package call

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/flight"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// roundTrip makes an upstream request for a call. It returns its outcome as an event,
// and the answer that the event is part of, if there is one.
type roundTrip func(*Call) (mrtr.Event, *upstream.Answer)

// round is the upstream request of a round in flight. It is borrowed like a
// buffer, so that a suspended call holds neither it nor the headers it names.
type round struct {
	*Call
	up     upstream.Call
	params []byte
	hear   func(jsonrpc.Message) // notify, bound once, not once a call
	enter  func(bool) error      // admitted, bound in the same way
	idle   func()
	told   []byte // params of the progress that is put together
	owed   flight.Owed
}

var rounds sync.Pool

// borrowRound returns a round of the call k.
func borrowRound(k *Call) *round {
	r, ok := rounds.Get().(*round)
	if !ok {
		r = new(round)
		r.hear, r.enter = r.notify, r.admitted
		r.idle = func() { r.out.Flush() }
	}
	r.Call = k
	return r
}

func (r *round) giveBack() {
	r.owed.Over()
	r.Call, r.up = nil, upstream.Call{}
	if cap(r.params) <= maxPooled {
		rounds.Put(r)
	}
}

// sendRound sends the round in flight and returns its outcome as an event.
func sendRound(k *Call) (mrtr.Event, *upstream.Answer) {
	r := borrowRound(k)
	defer r.giveBack()
	return r.send()
}

func (r *round) send() (mrtr.Event, *upstream.Answer) {
	ctx := r.build()
	held, err := r.charge()
	if err != nil {
		ctx.Cancel()
		return mrtr.Short(err), nil
	}
	defer held.Release()
	r.overhead.End(observe.ToServer, r.flow.Round == 0) // later people had their time
	answer, err := bearer{r.Call}.do(ctx, &r.up, r.hear)
	ctx.Cancel()
	r.overhead.Begin()
	if err == nil {
		r.client.Driver.Alive()
	}
	switch {
	case err != nil:
		return r.broke(err), nil
	case answer.Error != nil:
		return mrtr.Failed(answer.Error), answer
	}
	r.accepted()
	return mrtr.Result(answer.Result, answer.ResultType()).Within(answer.AnswerIn), answer
}

// timesInTransit is how often params are in memory while a request is at the server, besides with the client's:
// as this round has them, and in the request.
const timesInTransit = 2

// charge charges for the request. A retry is not refused for what its session holds: it ends that.
func (r *round) charge() (held budget.Hold, err error) {
	if len(r.params) <= flight.FewBytes {
		return held, nil
	}
	held = budget.On(r.held.Account())
	if err = held.Set(timesInTransit * len(r.params)); err != nil && r.owed.MayOverdraw() {
		err = held.Overdraw(timesInTransit * len(r.params))
	}
	return held, err
}

// errLeft ends a call of a client that cannot hear of it any more.
var errLeft = errors.New("its client left while the call waited for its turn")

// admitted is told that it is the call's turn to take up the server. Whoever waited may have
// lost its client meanwhile: then nothing is executed for nobody.
func (r *round) admitted(waited bool) error {
	if !waited {
		return nil
	}
	r.client.Driver.notices.queued.Warn().Msg("calls wait for their turn (limits.concurrency)")
	if !r.resent() && !r.out.Reachable() {
		return errLeft
	}
	return nil
}

// resent reports whether the server has had a request of this call before.
func (r *round) resent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flow.Round > 0
}

// accepted tells that the upstream takes the credentials of the call (H-6).
func (r *round) accepted() {
	r.mu.Lock()
	caller := r.caller
	r.caller.Rotation = 0 // it is told once
	r.mu.Unlock()
	if caller.Rotation == 0 || !r.client.Session.Accepted(caller) {
		return
	}
	r.mu.Lock()
	r.caller.Unproven = false
	r.mu.Unlock()
}

// build makes the upstream request of this round (D.4): the client's params,
// unchanged in every round (D-I2), plus what this round adds.
func (r *round) build() *flight.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	env := translate.Envelope{
		Method:         r.flow.Method,
		Version:        r.client.Server.Version,
		ClientInfo:     r.client.ClientInfo,
		Capabilities:   r.flow.Capabilities,
		LogLevel:       r.flow.Level,
		InputResponses: r.flow.InputResponses(),
		RequestState:   r.flow.RequestState,
	}
	if r.flow.Progress.Token != nil {
		r.token = upstreamToken(r.serial, r.flow.Round)
		env.ProgressToken = r.token
	}
	r.params = translate.Params(r.params[:0], r.flow.Params, &env)
	r.up = upstreamCallLocked(r.Call, r.flow.Method, r.params)
	r.up.Idle, r.up.About, r.up.Admitted = r.idle, r.about(env.Version), r.enter
	if r.flow.Round > 0 {
		r.owed = flight.Owe(&r.held, r.ctx, r.client.Driver.overdrafts, r.up.Tenant, r)
		r.up.Held = &r.owed
	}
	return r.ctx
}

// Attached implements flight.Taker.
func (r *round) Attached() bool { return r.Reply().Attached() }

// about tells what the params say that were just written.
func (r *round) about(version string) upstream.About {
	about := upstream.About{Version: cmp.Or(version, string(mcp.V20260728)), Name: r.name}
	if r.flow.Method == mcp.MethodResourcesRead {
		about.Name = rawjson.Get(r.flow.Params, "uri")
	}
	return about
}

// upstreamCallLocked addresses a request with the call's latest credentials (H-2). Its turn is that
// of whose share the client takes, and among its sessions this one's. Requests without a
// session are all of the same.
func upstreamCallLocked(k *Call, method string, params []byte) upstream.Call {
	call := upstream.Call{
		Method:        method,
		Params:        params,
		Authorization: k.caller.Authorization,
		Principal:     k.client.Driver.SeenAs(&k.caller),
		Header:        k.headerLocked(),
		Held:          &k.held,
		Account:       k.held.Account(),
		Tenant:        cmp.Or(k.caller.Tenant, k.client.Tenant),
		Link:          k.link,
		Origin:        k,
	}
	if k.client.Server != catalog.Unknown {
		call.Session = k.client
	}
	return call
}

// broke is the event of a round that failed, which says whether it may be sent again
// (D-15).
func (r *round) broke(err error) mrtr.Event {
	failure, ok := errors.AsType[*upstream.Failure](err)
	switch {
	case !ok:
	case (failure.Cause == upstream.Busy || failure.Cause == upstream.SignIn) && failure.RetryAfter > 0:
		return mrtr.Busy(err, failure.RetryAfter)
	case failure.Cause == upstream.NoMemory && !failure.Sent:
		return mrtr.Short(err)
	case failure.Cause != upstream.Lost && failure.Cause != upstream.Unreachable:
	case !failure.Sent:
		return mrtr.Unsent(err)
	case failure.Cause == upstream.Lost && r.repeatable():
		return mrtr.Lost(err)
	}
	return mrtr.Failed(err)
}

// repeatable reports whether sending the round twice does no more than sending it once.
func (r *round) repeatable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return repeatableLocked(r.Call, r.up.Header)
}

// repeatableLocked tells by the method, or by what the tool's own hints promise to who has these headers (Q8).
func repeatableLocked(k *Call, header http.Header) bool {
	if k.flow.Repeatable {
		return true // another process knew
	}
	if k.flow.Method == mcp.MethodToolsCall {
		return k.client.Driver.Catalog.Tool(k.audienceLocked(header), k.name).Repeatable
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
