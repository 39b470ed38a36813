package mrtr

import "github.com/mcpbridge/bridge/mcp"

// Step takes one event and returns what to do. The same flow, event and moment give
// the same flow and action. Events that no longer matter, and late ones, change
// nothing (D-T21).
func (f *Flow) Step(ev Event, at Moment) Action {
	if f.Over() {
		return Action{}
	}
	switch ev.kind {
	case tick:
		return f.onTick(ev.flag, at)
	case asked:
		return f.onAsked(&ev)
	case housed:
		f.Home = *ev.home
		return Action{}
	case announced:
		return f.onAnnounced(ev.key)
	case noted:
		return f.onNoted(ev.key)
	case cancelled:
		return f.end(Silent, Action{Do: Stop})
	case failed:
		return f.fail(ev.err)
	}
	switch f.State {
	case Admitted:
		if ev.kind == started {
			return f.begin(at)
		}
	case Sending:
		return f.whileSending(&ev, at)
	case Gathering, Polling:
		return f.whileAsking(&ev, at)
	}
	return Action{}
}

// whileSending takes what becomes of the round in flight.
func (f *Flow) whileSending(ev *Event, at Moment) Action {
	switch ev.kind {
	case result:
		f.Outage = Outage{}
		return f.onResult(ev, at)
	case unsent:
		return f.onUnsent(ev.err, at)
	case busy:
		return f.outlast(ev.err, ev.after, at)
	case short:
		return f.onShort(ev.err, at)
	case lost:
		return f.onLost(ev.err, at)
	}
	return Action{}
}

// whileAsking takes answers, and what the server says of its task.
func (f *Flow) whileAsking(ev *Event, at Moment) Action {
	switch ev.kind {
	case taskStatus:
		if f.State == Polling {
			return f.onTask(ev.payload, at)
		}
	case unseen:
		if f.State == Polling && f.Task.Fetching {
			return f.fail(ev.err)
		}
	case updated:
		return f.onUpdated(ev, at)
	case lost:
		return f.onInterrupted(at)
	case input:
		return f.onInput(ev.key, ev.payload, at)
	case noInput:
		return f.onNoInput(ev.key, ev.err, at)
	case unusable:
		return f.onUnusable(ev, at)
	}
	return Action{}
}

// onResult is D-T3 to D-T8.
func (f *Flow) onResult(ev *Event, at Moment) Action {
	raw := ev.payload
	f.Hurry = 0
	round, err := f.parseRound(raw, ev.typ)
	if err != nil {
		return f.fail(err)
	}
	switch round.Type {
	case mcp.ResultComplete:
		done := f.completedURLs(nil, raw)
		return f.end(Done, Action{Do: Deliver, Completed: done})
	case mcp.ResultTask:
		return f.onTaskCreated(raw, at)
	}
	return f.onInputRequired(round, ev, at)
}

// onInputRequired replaces what the last round left: the latest result alone
// decides about state and answers (D-I4, D-I6). Nothing that is kept aliases it.
func (f *Flow) onInputRequired(round Round, ev *Event, at Moment) Action {
	f.RequestState = clone(round.State)
	if ev.after > 0 && ev.after < f.limits().ServerRequest {
		f.Hurry = ev.after
	}
	f.Inputs = make([]Input, len(round.Requests))
	for i, req := range round.Requests {
		req.Params = clone(req.Params)
		f.Inputs[i] = Input{InputRequest: req}
	}
	// The whole map is checked before the first entry is asked, so that a
	// refused round has no side effects (C-33).
	for i := range f.Inputs {
		if abort := f.Inputs[i].check(f.Capabilities); abort != nil {
			return f.fail(abort)
		}
	}
	completed := f.completedURLs(f.Inputs, ev.payload)
	act := f.gather(at)
	act.Completed = completed
	return act
}

// gather asks what must be asked, or pauses when nothing must.
func (f *Flow) gather(at Moment) Action {
	if len(f.Inputs) == 0 {
		f.StateOnly++
		if limit := f.limits().StateOnly; f.StateOnly > limit {
			return f.fail(&LimitReached{"limits.state-only-rounds", limit})
		}
		return f.pause(backoff(stateOnlyFirst, stateOnlyMost, f.StateOnly-1), at)
	}
	repeats := f.recallURLs()
	if ask := f.askable(); len(ask) > 0 {
		f.State = Gathering
		return f.ask(ask, at)
	}
	return f.pause(backoff(urlFirst, urlMost, repeats-1), at) // D-T22: every entry is a remembered consent
}

// onAsked notes under which ids a question goes out.
func (f *Flow) onAsked(ev *Event) Action {
	if in := f.open(ev.key); in != nil {
		in.ServerRequestID, in.ElicitationID = ev.typ, string(ev.payload)
	}
	return Action{}
}

// onNoted passes words on to a client that wants to hear how its call goes on.
func (f *Flow) onNoted(words string) Action {
	f.Note = words
	if f.Progress.Token == nil || f.State == Sending {
		return Action{}
	}
	act := Action{Do: Tell}
	f.Progress.say(&act, words)
	return act
}

// onInput records an answer; an unknown or answered key changes nothing.
func (f *Flow) onInput(key string, response []byte, at Moment) Action {
	if f.State == Polling {
		return f.onTaskAnswer(key, response, at)
	}
	in := f.open(key)
	if in == nil {
		return Action{}
	}
	in.Response = response
	if f.hoards(in) {
		return f.fail(&LimitReached{"the size of answers that wait for others of their round", "4 MiB"})
	}
	f.rememberURL(in)
	if ask := f.askable(); len(ask) > 0 {
		return f.ask(ask, at)
	}
	if len(f.Outstanding()) > 0 {
		return Action{}
	}
	return f.nextRound(at) // D-T12
}

// onNoInput is C.9: a missing elicitation answer becomes cancel, for the
// server to judge; sampling and roots have no such word and abort (C-34).
func (f *Flow) onNoInput(key string, err error, at Moment) Action {
	in := f.open(key)
	if in == nil {
		return Action{}
	}
	if word := in.unanswered(); word != "" {
		return f.onInput(key, []byte(word), at)
	}
	abort := *err.(*Abort)
	abort.Method = in.Method
	in.Response = []byte("{}") // it is settled: not among those to withdraw
	return f.fail(&abort)
}

// onUnusable asks once more, or does without an answer (C-26).
func (f *Flow) onUnusable(ev *Event, at Moment) Action {
	in := f.open(ev.key)
	if in == nil {
		return Action{}
	}
	if !ev.flag || in.AskedAgain {
		return f.onNoInput(ev.key, ev.err, at)
	}
	in.AskedAgain = true
	return f.ask([]*Input{in}, at)
}
