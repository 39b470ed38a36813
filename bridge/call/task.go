package call

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Tasks of the server are hidden from legacy clients: the bridge declares the
// extension, polls, passes answers on and delivers the result (section G.1).

// serverTask is the task that the server has made of a call. It has no state of its own.
type serverTask struct{ *Call }

func fetchTask(k *Call) (mrtr.Event, *upstream.Answer) { return serverTask{k}.fetch() }

// fetch asks for the task's state.
func (k serverTask) fetch() (mrtr.Event, *upstream.Answer) {
	ctx, call := k.look()
	if call == nil {
		return mrtr.Cancelled(), nil // the flow has ended in the meantime
	}
	answer, _, err := k.insist(ctx, call)
	switch {
	case err != nil:
		return mrtr.Unseen(err), nil
	case answer.Error != nil:
		return mrtr.Unseen(mrtr.TaskGone(answer.Error)), answer
	}
	return mrtr.TaskStatus(answer.Result), answer
}

// insist makes a request about the task. Transport failures are tried again for as long as a
// round may take: it may be repeated (G-14). again says that the server may have had it before
// that which it answered.
func (k serverTask) insist(ctx context.Context, call *upstream.Call) (answer *upstream.Answer, again bool, err error) {
	sent := false
	answer, err = backoff.Retry(ctx, func() (*upstream.Answer, error) {
		again = sent
		answer, err := bearer(k).do(ctx, call, nil)
		if err == nil {
			return answer, nil
		}
		failure, ok := errors.AsType[*upstream.Failure](err)
		if !ok || failure.Cause == upstream.Unauthorized {
			return nil, backoff.Permanent(err)
		}
		sent = sent || failure.Sent
		return nil, err
	}, backoff.WithMaxElapsedTime(k.client.Driver.Flows.Round))
	return answer, again, err
}

// updateLocked returns what sends one answer to the task, perhaps again, and tells what became of that. What
// an acknowledgment, or a refusal, comes to is shown by the next polls. That it was acknowledged is kept, which nothing waits
// for: whoever goes on with the call does not send it twice (G-7).
func (k serverTask) updateLocked(key string, again bool, tell func(mrtr.Event)) (send func()) {
	call := k.buildLocked(mcp.MethodTasksUpdate, k.flow.Task, k.flow.TaskResponse(key))
	return func() { k.client.Driver.Background(func() { k.update(call, key, again, tell) }) }
}

func (k serverTask) update(call *upstream.Call, key string, again bool, tell func(mrtr.Event)) {
	ctx, cancel := context.WithTimeout(k.client.Driver.ctx, k.client.Driver.Flows.Round)
	defer cancel()
	answer, repeated, err := k.insist(ctx, call)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = &mrtr.LimitReached{Limit: "timeouts.round", Value: k.client.Driver.Flows.Round}
	case err == nil && answer.Error != nil:
		err = answer.Error
	}
	if err != nil {
		k.client.Driver.Log.Warn().Str(logfield.FlowID, k.Name()).Err(err).Msg("the server's task did not take an answer")
	}
	tell(mrtr.Updated(key, err, answer != nil && (again || repeated))) // without one it had a round to show it
	if err == nil {
		// Of a process that is killed before that, whoever goes on sends the answer again, as after a lost acknowledgment.
		k.saving.noteTaken()
	}
}

// goOn sends the answers that another process has taken and may not have passed on.
func (k serverTask) goOn(tell func(mrtr.Event)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.flow.Undelivered() {
		k.updateLocked(key, true, tell)()
	}
}

// cancelLocked asks the server to give a task up, and does not wait for it:
// cancelling is cooperative (G-12).
func (k serverTask) cancelLocked(task *mrtr.Task) { k.cancellationLocked(task)() }

// cancellationLocked returns what asks the server to give a task up.
func (k serverTask) cancellationLocked(task *mrtr.Task) (ask func()) {
	call := k.buildLocked(mcp.MethodTasksCancel, task, nil)
	return func() {
		k.client.Driver.Background(func() {
			ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
			defer cancel()
			if _, err := k.client.Driver.Upstream.Do(ctx, call, nil); err != nil {
				k.client.Driver.Log.Info().Str(logfield.FlowID, k.Name()).Err(err).Msg("a task could not be cancelled")
			}
		})
	}
}

// GiveUp returns what has the server give up the task of a call of another process, by its record; nil: it has none. That is no end
// of the call: where that process lives it has the call, and tells. Of the call's params nothing stays.
func GiveUp(c *Client, caller downstream.Caller, record []byte) (tell func(), err error) {
	flow, err := mrtr.Decode(record)
	if err != nil || flow.Task == nil {
		return nil, err
	}
	k := &Call{client: c, flow: *flow, caller: actsFor(c, caller, flow), serial: c.Driver.serial.Add(1)}
	k.flow.Params = nil
	k.mu.Lock()
	defer k.mu.Unlock()
	return serverTask{k}.cancellationLocked(flow.Task), nil
}

// cancelTimeout bounds the wait for the acknowledgment of a tasks/cancel.
const cancelTimeout = 10 * time.Second

// look builds a tasks/get; nil when the flow is over.
func (k serverTask) look() (context.Context, *upstream.Call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flow.Task == nil {
		return nil, nil
	}
	return k.ctx, k.buildLocked(mcp.MethodTasksGet, k.flow.Task, nil)
}

// buildLocked builds a request about task; they never carry request state (G-15).
func (k serverTask) buildLocked(method string, task *mrtr.Task, responses []byte) *upstream.Call {
	call := upstreamCallLocked(k.Call, method, translate.Params(nil, task.Params(), &translate.Envelope{
		Method:         method,
		Version:        k.client.Server.Version,
		ClientInfo:     k.client.ClientInfo,
		Capabilities:   k.flow.Capabilities,
		InputResponses: responses,
	}))
	return &call
}
