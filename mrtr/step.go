package mrtr

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Step takes one event and returns what to do. It is pure: the same flow and
// event give the same flow and action. Events that no longer matter, and late
// ones, change nothing (D-T21).
func (f *Flow) Step(ev Event) Action {
	if f.Over() {
		return Action{}
	}
	switch {
	case ev.kind == started && f.State == Admitted:
		f.State = Sending
		return Action{Do: Send}
	case ev.kind == result && f.State == Sending:
		return f.onResult(&ev)
	case ev.kind == taskStatus && f.State == Polling:
		return f.onTask(ev.payload)
	case ev.kind == timer && f.State == Polling:
		return Action{Do: Fetch}
	case ev.kind == input && f.State == Polling:
		return f.onTaskAnswer(ev.key, ev.payload)
	case ev.kind == noInput && f.State == Polling:
		return f.onNoInput(ev.key, ev.err)
	case ev.kind == input && f.State == Gathering:
		return f.onInput(ev.key, ev.payload)
	case ev.kind == noInput && f.State == Gathering:
		return f.onNoInput(ev.key, ev.err)
	case ev.kind == timer && f.State == Pausing:
		return f.nextRound()
	case ev.kind == cancelled:
		return f.end(Silent, Action{Do: Stop})
	case ev.kind == failed:
		return f.fail(ev.err)
	}
	return Action{}
}

// onResult is D-T3 to D-T8.
func (f *Flow) onResult(ev *Event) Action {
	raw := ev.payload
	round, err := f.parseRound(raw, ev.typ)
	if err != nil {
		return f.fail(err)
	}
	switch round.Type {
	case mcp.ResultComplete:
		done := f.completedURLs(nil, raw)
		return f.end(Done, Action{Do: Deliver, Completed: done})
	case mcp.ResultTask:
		return f.onTaskCreated(raw)
	}
	return f.onInputRequired(round, raw)
}

// onInputRequired replaces what the last round left: the latest result alone
// decides about state and answers (D-I4, D-I6).
func (f *Flow) onInputRequired(round Round, raw []byte) Action {
	f.RequestState = round.State
	f.Inputs = make([]Input, len(round.Requests))
	for i, req := range round.Requests {
		f.Inputs[i] = Input{InputRequest: req}
	}
	// The whole map is checked before the first entry is asked, so that a
	// refused round has no side effects (C-33).
	for i := range f.Inputs {
		if abort := f.Inputs[i].check(f.Capabilities); abort != nil {
			return f.fail(abort)
		}
	}
	completed := f.completedURLs(f.Inputs, raw)
	act := f.gather()
	act.Completed = completed
	return act
}

// gather asks what must be asked, or pauses when nothing must.
func (f *Flow) gather() Action {
	if len(f.Inputs) == 0 {
		f.StateOnly++
		if limit := f.Limits.WithDefaults().StateOnly; f.StateOnly > limit {
			return f.fail(&LimitReached{"limits.state-only-rounds", limit})
		}
		f.State = Pausing
		return Action{Do: Wait, For: backoff(stateOnlyFirst, stateOnlyMost, f.StateOnly-1)}
	}
	repeats := f.recallURLs()
	f.State = Gathering
	if ask := f.askable(); len(ask) > 0 {
		return Action{Do: Ask, Ask: ask}
	}
	f.State = Pausing // D-T22: every entry is a remembered consent
	return Action{Do: Wait, For: backoff(urlFirst, urlMost, repeats-1)}
}

// askable marks and returns the inputs to put to the client now: roots and
// sampling at once, elicitations one after another in document order (C-37).
func (f *Flow) askable() []*Input {
	var ask []*Input
	showing := false // a person is looking at a form
	for i := range f.Inputs {
		in := &f.Inputs[i]
		switch {
		case in.Response != nil:
		case in.Asked:
			showing = showing || in.isElicitation()
		case in.isElicitation() && showing:
		default:
			showing = showing || in.isElicitation()
			in.Asked = true
			ask = append(ask, in)
		}
	}
	return ask
}

// onInput records an answer; an unknown or answered key changes nothing.
func (f *Flow) onInput(key string, response []byte) Action {
	in := f.Input(key)
	if in == nil || !in.Asked || in.Response != nil {
		return Action{}
	}
	in.Response = response
	f.rememberURL(in)
	if ask := f.askable(); len(ask) > 0 {
		return Action{Do: Ask, Ask: ask}
	}
	if len(f.Outstanding()) > 0 {
		return Action{}
	}
	return f.nextRound() // D-T12
}

// onNoInput is C.9: a missing elicitation answer becomes cancel, for the
// server to judge; sampling and roots have no such word and abort (C-34).
func (f *Flow) onNoInput(key string, err error) Action {
	in := f.Input(key)
	if in == nil || !in.Asked || in.Response != nil {
		return Action{}
	}
	if in.isElicitation() {
		return f.Step(Answered(key, []byte(`{"action":"cancel"}`)))
	}
	abort := *err.(*Abort)
	abort.Method = in.Method
	in.Response = []byte("{}") // it is settled: not among those to withdraw
	return f.fail(&abort)
}

func (f *Flow) nextRound() Action {
	if limit := f.Limits.WithDefaults().Rounds; f.Round >= limit {
		return f.fail(&LimitReached{"limits.rounds", limit})
	}
	f.Round++
	f.State = Sending
	return Action{Do: Send}
}

func (f *Flow) fail(err error) Action {
	return f.end(Done, Action{Do: Fail, Err: err})
}

// end is the only way out. Whatever was asked and not answered is withdrawn (C-35).
func (f *Flow) end(state State, act Action) Action {
	if f.State == Gathering || f.State == Polling {
		act.Withdraw = f.Outstanding()
		act.Task, f.Task = f.Task, nil
	}
	f.State = state
	return act
}

// isError reports whether a result is a tool's error.
func isError(result []byte) bool {
	return string(rawjson.Get(result, "isError")) == "true"
}
