package call

import (
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// reporter tells what is to be seen of a call. It has no state of its own.
type reporter struct{ *Call }

// report tells the log and who watches how the call ended, once and before its client hears
// of it: whoever has the answer finds it counted.
func (k reporter) report(e *effect) {
	if e.again {
		return
	}
	e.told = true
	done := observe.CallEnd{Method: k.flow.Method, Rounds: k.flow.Round + 1, Session: logfield.Short(k.flow.Home.Session), Serial: k.serial}
	if k.silences > 0 {
		done.Silences, done.Silence = int(k.silences), k.client.Driver.Flows.ServerRequest
	}
	if began := k.flow.Clock.Began; !began.IsZero() { // else nothing was sent
		done.Took = time.Since(began)
	}
	switch e.do {
	case mrtr.Deliver:
		done.ToolError = ends.FailedTool(k.flow.Method, e.result)
	case mrtr.Stop:
		done.End, done.Cause = observe.Cancelled, "client"
	case mrtr.Fail:
		done.End, done.Cause, done.Code = ends.EndOf(e.err)
		k.reportUnasked(e.err)
	}
	ending(k).log(&done, e)
	if watch := k.client.Driver.Watch; watch != nil {
		done.Version, done.Transport, done.HTTP = k.client.Rules.Version, k.client.Transport, k.http
		if done.Method == mcp.MethodToolsCall {
			done.Tool = k.name
		}
		if done.Unusual() {
			done.ID, done.Name = k.Name(), ends.NameOf(k.name)
		}
		watch.CallEnded(done)
	}
}

// reportQuestion tells who watches what became of a question, after so long.
func (k reporter) reportQuestion(in *mrtr.Input, outcome observe.Outcome, took time.Duration) {
	if watch := k.client.Driver.Watch; watch != nil {
		watch.QuestionEnded(observe.Question{Kind: observe.KindOf(in.Method, in.Mode()), Version: k.client.Rules.Version, Outcome: outcome, Took: took, Transport: k.client.Transport, HTTP: k.http})
	}
}

// askedForLocked returns how long the questions have been open.
func (k reporter) askedForLocked() time.Duration {
	by := k.flow.Clock.AnswerBy
	if by.IsZero() {
		return 0
	}
	return time.Since(by.Add(-k.flow.AnswerTime()))
}

// reportWithdrawnLocked tells who watches that a question was taken back.
func (k reporter) reportWithdrawnLocked(in *mrtr.Input, act *mrtr.Action) {
	if slices.Contains(act.Ignored, in) {
		k.reportQuestion(in, observe.Unanswered, k.flow.AnswerTime())
		return
	}
	k.reportQuestion(in, observe.Withdrawn, k.askedForLocked())
}

// reportTakenBackLocked is reportWithdrawnLocked of a question that somebody else may have been asked.
func (k reporter) reportTakenBackLocked(in *mrtr.Input, act *mrtr.Action) {
	if slices.Contains(act.Ignored, in) {
		k.reportElsewhereLocked(k.elsewhereLocked(in), observe.Unanswered)
		return
	}
	k.reportElsewhereLocked(k.elsewhereLocked(in), observe.Withdrawn)
}

// reportOverdueLocked tells who watches of questions that nobody has answered in time, in a call that
// goes on with the same one only.
func (k reporter) reportOverdueLocked() {
	for _, in := range k.flow.Outstanding() {
		k.reportElsewhereLocked(k.elsewhereLocked(in), observe.Unanswered)
	}
}

// elsewhereLocked returns the inquiry that in is; nil: the client is asked, or nobody is yet.
func (k reporter) elsewhereLocked(in *mrtr.Input) *inquiry {
	if !in.Asked || in.ServerRequestID != "" {
		return nil // there may be one of an earlier round under its key
	}
	return k.asking.tickets[in.Key]
}

// reportElsewhereLocked tells who watches, once, what became of a question that somebody else than the
// client was asked; nil: nobody was.
func (k reporter) reportElsewhereLocked(asked *inquiry, outcome observe.Outcome) {
	if asked == nil || asked.reported {
		return
	}
	asked.reported = true
	if watch := k.client.Driver.Watch; watch != nil {
		watch.QuestionEnded(observe.Question{Kind: asked.kind, Version: k.client.Rules.Version, Outcome: outcome, Elsewhere: true, Transport: k.client.Transport, HTTP: k.http})
	}
}

// reportUnasked tells who watches of a question that the client could not be asked.
func (k reporter) reportUnasked(err error) {
	abort := (*mrtr.Abort)(nil)
	if !errors.As(err, &abort) {
		return
	}
	in := &mrtr.Input{InputRequest: mrtr.InputRequest{Method: abort.Method}}
	switch {
	case abort.Undeclared != "":
		k.reportQuestion(in, observe.NotDeclared, 0)
	case abort.Unasked:
		k.reportQuestion(in, observe.NotExpressible, 0)
	}
}

// reportAnswerLocked tells who watches what a client answered.
func (k reporter) reportAnswerLocked(in *mrtr.Input, msg *jsonrpc.Message) {
	switch {
	case k.client.Driver.Watch == nil:
	case msg.Error != nil:
		k.reportQuestion(in, observe.ClientError, k.askedForLocked())
	default:
		k.reportQuestion(in, ends.OutcomeOf(in.Method, msg.Result), k.askedForLocked())
	}
}

// repeatedLocked tells who watches that the flow sends a round again, by what it was before
// the step.
func (k reporter) repeatedLocked(resent bool, stateOnly int) {
	watch := k.client.Driver.Watch
	if watch == nil {
		return
	}
	if k.flow.Resent && !resent {
		watch.Repeated(observe.BrokenLine)
	}
	if k.flow.StateOnly > stateOnly {
		watch.Repeated(observe.StateOnly)
	}
}

// sight describes the call as it stands; alive is false when it has ended. served has
// the kinds that its client has answered.
func (k reporter) sight(served mcp.InputKindSet) (flow observe.Flow, alive bool) {
	reachable, detached := k.out.Reachable(), k.repeatable != nil && !k.repeatable.Waits()
	k.mu.Lock()
	defer k.mu.Unlock()
	limits, clock := &k.client.Driver.Flows, &k.flow.Clock
	flow = observe.Flow{
		ID: k.Name(), Method: k.flow.Method, Name: ends.NameOf(k.name), Reachable: reachable, Detached: detached,
		Began: clock.Began, Deadline: clock.Deadline, Until: clock.Due,
		Round: k.flow.Round, StateOnly: k.flow.StateOnly, StateMost: limits.StateOnly, StateCap: "limits.state-only-rounds",
	}
	left := limits.Rounds - k.flow.Round
	if k.flow.State != mrtr.Sending {
		left-- // it was called for already
	}
	if most := k.flow.StateOnly + left; most < limits.StateOnly {
		flow.StateMost, flow.StateCap = most, "limits.rounds"
	}
	switch k.flow.State {
	case mrtr.Sending:
		flow.Waits, flow.Since = observe.ForServer, clock.Due.Add(-limits.Round)
	case mrtr.Gathering:
		flow.Waits, flow.Since, flow.Until = observe.ForClient, clock.AnswerBy.Add(-k.flow.AnswerTime()), clock.AnswerBy
	case mrtr.Pausing:
		flow.Waits, flow.Since = observe.ForTime, time.Now()
	case mrtr.Polling:
		flow.Waits, flow.Since = observe.ForTask, time.Now()
		if !clock.AnswerBy.IsZero() {
			flow.Waits, flow.Since, flow.Until = observe.ForClient, clock.AnswerBy.Add(-k.flow.AnswerTime()), clock.AnswerBy
		}
	}
	flow.Late = detached && !clock.AnswerBy.IsZero() && !time.Now().Before(clock.AnswerBy)
	for i := range k.flow.Inputs {
		flow.Questions = append(flow.Questions, k.openLocked(&k.flow.Inputs[i], served))
	}
	return flow, !k.flow.Over()
}

// openLocked describes a question of the round.
func (k reporter) openLocked(in *mrtr.Input, served mcp.InputKindSet) observe.Open {
	message, _ := rawjson.Text(rawjson.Get(in.Params, "message"))
	asked := k.elsewhereLocked(in)
	return observe.Open{
		ID: observe.QuestionID(in.ServerRequestID), Method: in.Method, Kind: observe.KindOf(in.Method, in.Mode()), Asked: in.Asked, Answered: in.Response != nil || asked != nil && asked.answered,
		Proven: served.Has(in.Kind()), Message: fault.Clip(message), By: asked.by(),
	}
}

// by says who is asked; nil: the client.
func (asked *inquiry) by() observe.By {
	switch {
	case asked == nil:
		return observe.ByClient
	case asked.Link != "":
		return observe.ByPage
	}
	return observe.ByModel
}
