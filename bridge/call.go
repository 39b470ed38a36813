package bridge

import (
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// call is one client request from its arrival to its one end. Its flow decides;
// the call carries out.
type call struct {
	conv      *conversation
	req       downstream.Request // owns its memory: the body it was parsed from
	principal string             // who made it
	out       downstream.Reply
	task      *hostedTask // behind which it runs, and its out; nil for most
	serial    uint64

	mu       sync.Mutex
	caller   downstream.Caller // with the newest credentials of the principal
	flow     mrtr.Flow
	progress progress
	level    string        // log level sent upstream; empty: none (C-7)
	deadline time.Time     // of the whole call
	due      time.Time     // of the present state: round, pause or poll
	answerBy time.Time     // of the open server requests
	beat     time.Time     // of the next heartbeat
	look     time.Time     // at whether the client is there
	gone     bool          // it was not at the last look
	bell     *bell         // nil before the first request
	ctx      *roundContext // of the request in flight; nil before the first
	first    roundContext  // that of the first request, which is the only one of most calls
	resent   bool
	evicted  *call            // had to make room for this one
	slot     *catalog.Slot    // of the result; nil where it is not to be kept
	latest   []byte           // result of the latest round, while a step looks at it
	answer   *upstream.Answer // what it came in, while a step looks at it
}

func (c *conversation) newCall(caller downstream.Caller, req downstream.Request, out downstream.Reply) *call {
	k := &call{conv: c, req: req, principal: caller.Principal, caller: caller, out: out, serial: c.b.serial.Add(1)}
	c.mu.Lock()
	k.flow = mrtr.Flow{Method: req.Method, Capabilities: c.capabilities(), Limits: c.b.limits.Flow}
	k.flow.ListsAsk = c.b.opt.Draft != nil && c.b.opt.Draft()
	k.flow.TasksDeclared = c.server.Tasks && req.Method == mcp.MethodToolsCall
	if c.server.Logging {
		k.level = c.level
	}
	c.mu.Unlock()
	if out.Interactive() {
		k.progress.token = req.ProgressToken
	} else { // nothing can reach the client before the response
		k.flow.Capabilities, k.level = emptyObject, ""
	}
	if k.flow.TasksDeclared {
		k.flow.Capabilities = translate.WithTasks(k.flow.Capabilities)
	}
	return k
}

// drive feeds ev to the flow and carries out what it wants, round after round,
// until it waits for somebody else or is over. The flow's lock is not held
// while a request is in flight, so that the client can cancel.
func (k *call) drive(ev mrtr.Event) {
	k.carryOn(k.step(ev))
}

// carryOn makes upstream requests for as long as the flow wants them.
func (k *call) carryOn(next sender) {
	for next != nil {
		ev, answer := next(k)
		next = k.step(ev)
		answer.Release() // the step has used or copied all of it
	}
}

// resume is drive for callers that must not wait for the upstream: the client's
// POST with the answer gets its 202 at once.
func (k *call) resume(ev mrtr.Event) {
	if next := k.step(ev); next != nil {
		k.out.Continue(func() {
			defer k.survive()
			k.carryOn(next)
		})
	}
}

// survive answers for a call that panicked where nobody else would: a fault of one
// call must not end the process. It must be deferred itself.
func (k *call) survive() {
	if v := recover(); v != nil {
		k.conv.b.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Str(logfield.Method, k.req.Method).Msg("request failed")
		finish(k.out, k.req.ID, nil, internalError("internal error of the bridge", nil))
	}
}

// sender makes an upstream request for a call. It returns its outcome as an event,
// and the answer that the event is part of, if there is one.
type sender func(*call) (mrtr.Event, *upstream.Answer)

// step takes one event. It returns the upstream request to make next, if any.
func (k *call) step(ev mrtr.Event) (next sender) {
	k.mu.Lock()
	var act mrtr.Action
	for events := []mrtr.Event{ev}; len(events) > 0; events = events[1:] {
		if wanted := k.flow.Step(events[0]); wanted.Do != mrtr.Nothing {
			act = wanted
			events = append(events, k.perform(act)...)
		}
	}
	k.latest, k.answer = nil, nil
	evicted := k.evicted
	k.evicted = nil
	switch {
	case k.flow.Over():
	case act.Do == mrtr.Send:
		next = (*call).sendRound
	case act.Do == mrtr.Fetch:
		next = (*call).fetchTask
	}
	k.mu.Unlock()
	if evicted != nil {
		evicted.resume(mrtr.Failed(&mrtr.LimitReached{Limit: "limits.flows", Value: k.conv.b.limits.FlowsPerSession}))
	}
	return next
}

// perform carries out an action, except for the upstream request that it may
// want, and returns events that it led to at once. The caller holds mu.
func (k *call) perform(act mrtr.Action) []mrtr.Event {
	k.withdraw(act.Withdraw)
	k.completed(act.Completed)
	switch act.Do {
	case mrtr.Send:
		k.beginRound()
	case mrtr.Fetch:
		k.beginRequest()
	case mrtr.Ask:
		return k.ask(act.Ask)
	case mrtr.Wait:
		k.pause(act.For)
	case mrtr.Poll:
		return k.poll(act)
	case mrtr.Update:
		k.update(act.Key)
		return k.askTask(act.Ask)
	case mrtr.Deliver:
		if act.Result != nil {
			k.latest = act.Result
		}
		k.deliver()
		k.end(act)
	case mrtr.Fail:
		k.fail(act.Err)
		k.end(act)
	case mrtr.Stop:
		k.out.Abandon()
		k.end(act)
	}
	return nil
}

// beginRound prepares what a cancellation must find: the context of the round.
// It descends from nothing: neither the client's HTTP request (E-12) nor the
// process, whose end closes every session and so every call.
func (k *call) beginRound() {
	now := time.Now()
	if k.deadline.IsZero() {
		if !k.conv.enter(k) {
			k.flow.Step(mrtr.Cancelled())
			k.out.Abandon()
			return
		}
		k.deadline = now.Add(k.conv.b.limits.Call)
		k.look = now.Add(k.conv.b.limits.Grace)
	} else {
		k.conv.resumed(k)
		k.progress.nextRound()
	}
	k.beginRequest()
}

// beginRequest makes the context of an upstream request, for a cancellation to
// find, and starts its clock.
func (k *call) beginRequest() {
	now := time.Now()
	if k.flow.State == mrtr.Sending {
		k.answerBy, k.beat = time.Time{}, time.Time{}
	}
	if k.ctx == nil {
		k.ctx = &k.first
	} else {
		k.ctx = &roundContext{}
	}
	k.due = now.Add(k.conv.b.limits.Round)
	k.arm(now)
}

// sendRound sends the round in flight and returns its outcome as an event.
func (k *call) sendRound() (mrtr.Event, *upstream.Answer) {
	r := rounds.Get().(*round)
	r.of = k
	defer r.giveBack()
	for {
		k.build(r)
		answer, err := k.conv.b.opt.Upstream.Do(k.ctx, &r.call, r.notify)
		k.mu.Lock()
		if err != nil && k.mayResend(err) {
			k.resent = true
			k.mu.Unlock()
			continue // D-15: a new request under a new id, same round
		}
		k.ctx.cancel()
		var accepted func()
		if err == nil {
			k.latest, k.answer = answer.Result, answer
		}
		if err == nil && answer.Error == nil {
			accepted, k.caller.Accepted = k.caller.Accepted, nil
		}
		k.mu.Unlock()
		if accepted != nil {
			accepted()
		}
		switch {
		case err != nil:
			return mrtr.Failed(err), nil
		case answer.Error != nil:
			return mrtr.Failed(answer.Error), answer
		}
		return mrtr.Result(answer.Result, answer.ResultType()), answer
	}
}

// build makes the upstream request of this round (D.4): the client's params,
// unchanged in every round (D-I2), plus what this round adds.
func (k *call) build(r *round) {
	k.mu.Lock()
	defer k.mu.Unlock()
	env := translate.Envelope{
		Method:         k.req.Method,
		Version:        k.conv.server.Version,
		ClientInfo:     k.conv.clientInfo,
		Capabilities:   k.flow.Capabilities,
		LogLevel:       k.level,
		InputResponses: k.flow.InputResponses(),
		RequestState:   k.flow.RequestState,
	}
	if k.progress.token != nil {
		env.ProgressToken = k.progress.upstreamToken(k.serial, k.flow.Round)
	}
	r.params = translate.Params(r.params[:0], k.req.Params, &env)
	r.call = k.upstreamCall(k.req.Method, r.params)
	r.call.Idle = r.idle
}

// upstreamCall addresses a request with the call's latest credentials (H-2).
func (k *call) upstreamCall(method string, params []byte) upstream.Call {
	return upstream.Call{
		Method:        method,
		Params:        params,
		Authorization: k.caller.Authorization,
		Principal:     k.caller.Principal,
		Header:        k.caller.Header,
	}
}

// end releases what the call holds. The exchange has had its one end (D-I13).
func (k *call) end(act mrtr.Action) {
	if k.ctx != nil {
		k.ctx.cancel() // closing the response stream cancels the call upstream (E-37)
	}
	if act.Task != nil {
		k.cancelTask(act.Task)
	}
	k.report(&act)
	k.disarm()
	k.conv.exit(k, act.Withdraw)
}

// id is the call's name in log lines.
func (k *call) id() string { return "f" + strconv.FormatUint(k.serial, 10) }
