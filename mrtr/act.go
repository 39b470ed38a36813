package mrtr

import (
	"cmp"
	"time"

	"github.com/mcpbridge/bridge/rawjson"
)

func (f *Flow) nextRound(at Moment) Action {
	if limit := f.limits().Rounds; f.Round >= limit {
		return f.fail(&LimitReached{"limits.rounds", limit})
	}
	f.Round++
	f.Progress.nextRound()
	return f.send(at)
}

// send puts the present round in flight.
func (f *Flow) send(at Moment) Action {
	f.State, f.Note = Sending, ""
	f.Clock.Due = at.Now.Add(f.limits().Round)
	f.Clock.AnswerBy, f.Clock.Beat = time.Time{}, time.Time{}
	return Action{Do: Send}
}

// pause suspends the flow for about d.
func (f *Flow) pause(d time.Duration, at Moment) Action {
	f.State = Pausing
	f.Clock.Due = at.later(d)
	f.Clock.AnswerBy, f.Clock.Beat = time.Time{}, time.Time{}
	return Action{Do: Wait, For: d}
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

// ask puts inputs to the client, which has until the call's deadline for all of them.
func (f *Flow) ask(inputs []*Input, at Moment) Action {
	if f.State == Gathering {
		f.Clock.Due = f.Clock.Deadline
	}
	f.asking(inputs, at)
	return Action{Do: Ask, Ask: inputs}
}

// asking starts the clock of questions that are about to be asked, and stops it when
// none is open.
func (f *Flow) asking(ask []*Input, at Moment) {
	l, c := f.limits(), &f.Clock
	switch {
	case len(ask) > 0:
		c.AnswerBy = at.Now.Add(f.AnswerTime())
		if f.Progress.Token != nil {
			c.Beat = at.Now.Add(l.Heartbeat)
		}
	case len(f.Outstanding()) == 0:
		c.AnswerBy, c.Beat = time.Time{}, time.Time{}
	}
}

// AnswerTime returns how long the client may take to answer a question of the latest round.
func (f *Flow) AnswerTime() time.Duration { return cmp.Or(f.Hurry, f.limits().ServerRequest) }

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
			showing = showing || in.asksPerson()
		case in.asksPerson() && showing:
		default:
			showing = showing || in.asksPerson()
			in.Asked = true
			ask = append(ask, in)
		}
	}
	return ask
}

// open returns the input under key if it waits for an answer.
func (f *Flow) open(key string) *Input {
	in := f.Input(key)
	if in == nil || !in.Asked || in.Response != nil {
		return nil
	}
	return in
}

// fetch looks at the task.
func (f *Flow) fetch(at Moment) Action {
	f.Task.Fetching = true
	f.Clock.Due = at.Now.Add(f.limits().Round)
	return Action{Do: Fetch}
}

// Count is the event of progress in the round in flight: it is a method of its own
// because there may be thousands in one call. It returns what makes the raw value
// and total of the server the client's, nil where they stay, or reports that the
// progress is not to be delivered (C-2 to C-4). It restarts the clock of the
// round (D-T20).
func (f *Flow) Count(value, total []byte, at Moment) (told, of []byte, ok bool) {
	if f.State != Sending {
		return nil, nil, false
	}
	f.Clock.Due = at.Now.Add(f.limits().Round)
	return f.Progress.count(value, total)
}

// sayOfTask makes act tell what the task says of itself, once (G-5).
func (f *Flow) sayOfTask(act *Action) {
	message := f.Task.Message
	if f.Progress.Token == nil || message == "" || message == f.Progress.Message {
		return
	}
	f.Progress.Message = message
	f.Progress.say(act, message)
}

// isError reports whether a result is a tool's error.
func isError(result []byte) bool {
	return string(rawjson.Get(result, "isError")) == "true"
}

// limits returns those of the flow.
func (f *Flow) limits() *Limits {
	if f.Limits == nil {
		return &defaults
	}
	return f.Limits
}
