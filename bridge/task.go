package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Tasks of the server are hidden from legacy clients: the bridge declares the
// extension, polls, passes answers on and delivers the result (section G.1).

// fetchTask asks for the task's state. Transport failures are tried again for as
// long as a round may take: tasks/get is idempotent (G-14).
func (k *call) fetchTask() (mrtr.Event, *upstream.Answer) {
	ctx, call := k.lookAtTask()
	if call == nil {
		return mrtr.Cancelled(), nil // the flow has ended in the meantime
	}
	answer, err := backoff.Retry(ctx, func() (*upstream.Answer, error) {
		answer, err := k.conv.b.opt.Upstream.Do(ctx, call, nil)
		if failure := (*upstream.Failure)(nil); err != nil && (!errors.As(err, &failure) || failure.Cause == upstream.Unauthorized) {
			return nil, backoff.Permanent(err)
		}
		return answer, err
	}, backoff.WithMaxElapsedTime(k.conv.b.flows.Round))
	switch {
	case err != nil:
		return mrtr.Failed(err), nil
	case answer.Error != nil:
		return mrtr.Failed(mrtr.TaskGone(answer.Error)), answer
	}
	return mrtr.TaskStatus(answer.Result), answer
}

// update sends one answer to the task. The acknowledgment says nothing; the
// next polls show what came of it. Repeating is safe (G-14).
func (k *call) update(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), k.conv.b.flows.Round)
	call := k.taskRequest(mcp.MethodTasksUpdate, k.flow.Task, k.flow.TaskResponse(key))
	k.conv.b.background(func() {
		defer cancel()
		_, err := backoff.Retry(ctx, func() (*upstream.Answer, error) {
			return k.conv.b.opt.Upstream.Do(ctx, call, nil)
		})
		if err != nil {
			k.conv.b.log.Warn().Str(logfield.FlowID, k.id()).Err(err).Msg("an answer did not reach the task")
		}
	})
}

// cancelTask asks the server to give a task up, and does not wait for it:
// cancelling is cooperative (G-12).
func (k *call) cancelTask(task *mrtr.Task) {
	call := k.taskRequest(mcp.MethodTasksCancel, task, nil)
	k.conv.b.background(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
		defer cancel()
		if _, err := k.conv.b.opt.Upstream.Do(ctx, call, nil); err != nil {
			k.conv.b.log.Info().Str(logfield.FlowID, k.id()).Err(err).Msg("a task could not be cancelled")
		}
	})
}

// cancelTimeout bounds the wait for the acknowledgment of a tasks/cancel.
const cancelTimeout = 10 * time.Second

// lookAtTask builds a tasks/get; nil when the flow is over.
func (k *call) lookAtTask() (context.Context, *upstream.Call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flow.Task == nil {
		return nil, nil
	}
	return k.ctx, k.taskRequest(mcp.MethodTasksGet, k.flow.Task, nil)
}

// taskRequest builds a request about task; they never carry request state (G-15).
func (k *call) taskRequest(method string, task *mrtr.Task, responses []byte) *upstream.Call {
	call := k.upstreamCall(method, translate.Params(nil, task.Params(), &translate.Envelope{
		Method:         method,
		Version:        k.conv.server.Version,
		ClientInfo:     k.conv.clientInfo,
		Capabilities:   k.flow.Capabilities,
		InputResponses: responses,
	}))
	return &call
}
