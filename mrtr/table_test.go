package mrtr

import (
	"errors"
	"math"
	"testing"
	"time"
)

// inState returns a flow in each state. In Gathering, "q" is asked.
var inState = map[State]func(t *testing.T) *Flow{
	Admitted: func(*testing.T) *Flow { return newFlow() },
	Sending:  sending,
	Gathering: func(t *testing.T) *Flow {
		f := sending(t)
		expect(t, step(f, outcome(required(form("q")))), Ask, "q")
		return f
	},
	Pausing: func(t *testing.T) *Flow {
		f := sending(t)
		expect(t, step(f, outcome([]byte(`{"resultType":"input_required","requestState":"s"}`))), Wait, "")
		return f
	},
	Polling: polling,
	Done: func(t *testing.T) *Flow {
		f := sending(t)
		expect(t, step(f, Failed(errors.New("x"))), Fail, "")
		return f
	},
	Silent: func(t *testing.T) *Flow {
		f := sending(t)
		expect(t, step(f, Cancelled()), Stop, "")
		return f
	},
}

// events has one of each kind.
func events() []Event {
	broken := errors.New("broken")
	return []Event{
		Started(),
		outcome([]byte(`{"content":[]}`)),
		TaskStatus([]byte(`{"status":"working"}`)),
		Unseen(broken),
		Updated("q", nil, false),
		Answered("q", []byte(accept)),
		Unanswered("q", "no answer"),
		Unusable("q", "not what was asked", true),
		Asked("q", `"b-1"`, ""),
		Housed(Address{"s", 1}),
		Announced("unknown"),
		Noted("where to answer"),
		Tick(true),
		Unsent(broken),
		Busy(broken, time.Second),
		Short(broken),
		Lost(broken),
		Cancelled(),
		Failed(broken),
	}
}

// outcomes says what a step does and where it ends; what is not listed does nothing.
type end struct {
	do    Verb
	state State
}

var outcomes = map[State]map[eventKind]end{
	Admitted:  {started: {Send, Sending}},
	Sending:   {result: {Deliver, Done}, unsent: {Send, Sending}, lost: {Send, Sending}, busy: {Fail, Done}, short: {Fail, Done}},
	Gathering: {input: {Send, Sending}, noInput: {Send, Sending}, unusable: {Ask, Gathering}},
	Pausing:   {},
	Polling:   {taskStatus: {Poll, Polling}},
	Done:      {},
	Silent:    {},
}

// Every state takes every event: what is not for it changes nothing (D-T21).
func TestEveryStateTakesEveryEvent(t *testing.T) {
	kinds := map[eventKind]bool{}
	for state, flow := range inState {
		for _, ev := range events() {
			kinds[ev.kind] = true
			want, ok := outcomes[state][ev.kind]
			over := state == Done || state == Silent
			switch {
			case ok:
			case ev.kind == cancelled && !over:
				want = end{Stop, Silent}
			case ev.kind == failed && !over:
				want = end{Fail, Done}
			default:
				want = end{Nothing, state}
			}
			f := flow(t)
			if act := step(f, ev); act.Do != want.do || f.State != want.state {
				t.Errorf("%q takes %v: verb %d in %q, want %d in %q", state, ev, act.Do, f.State, want.do, want.state)
			}
		}
	}
	if len(kinds) != len(eventNames)-1 {
		t.Errorf("%d kinds of events, %d of them tried", len(eventNames)-1, len(kinds))
	}
}

// What time does, in each state, when its moment comes.
func TestTimeInEachState_DT15_DT20(t *testing.T) {
	tests := map[string]struct {
		state State
		at    func(*Clock) time.Time
		lost  bool // the client cannot be reached
		do    Verb
		end   State
		limit string
	}{
		"a round takes too long":       {Sending, func(c *Clock) time.Time { return c.Due }, false, Fail, Done, "timeouts.round"},
		"a call takes too long":        {Gathering, func(c *Clock) time.Time { return c.Deadline }, false, Fail, Done, "timeouts.flow"},
		"nobody answers":               {Gathering, func(c *Clock) time.Time { return c.AnswerBy }, false, Send, Sending, ""},
		"a pause ends":                 {Pausing, func(c *Clock) time.Time { return c.Due }, false, Send, Sending, ""},
		"a task is to be looked at":    {Polling, func(c *Clock) time.Time { return c.Due }, false, Fetch, Polling, ""},
		"the client is there":          {Gathering, func(c *Clock) time.Time { return c.Look }, false, Nothing, Gathering, ""},
		"the client is gone for once":  {Gathering, func(c *Clock) time.Time { return c.Look }, true, Nothing, Gathering, ""},
		"nothing is due, all is quiet": {Gathering, func(c *Clock) time.Time { return noon }, false, Nothing, Gathering, ""},
	}
	for name, tt := range tests {
		f := inState[tt.state](t)
		act := f.Step(Tick(!tt.lost), Moment{Now: tt.at(&f.Clock)})
		limit, _ := errors.AsType[*LimitReached](act.Err)
		if act.Do != tt.do || f.State != tt.end || (limit == nil) != (tt.limit == "") || limit != nil && limit.Limit != tt.limit {
			t.Errorf("%s: %+v in %q", name, act, f.State)
		}
	}
}

func TestClientThatStaysAwayEndsItsCall_E23(t *testing.T) {
	f := newFlow()
	f.Limits = &Limits{Round: time.Hour, Call: time.Hour, Grace: time.Minute}
	step(f, Started())
	look := f.Clock.Look
	for _, reachable := range []bool{false, true, false} {
		if act := f.Step(Tick(reachable), Moment{Now: look}); act.Do == Fail {
			t.Fatalf("reachable %v: %+v", reachable, act)
		}
		look = f.Clock.Look
	}
	act := f.Step(Tick(false), Moment{Now: look})
	if limit, ok := errors.AsType[*LimitReached](act.Err); !ok || limit.Limit != "timeouts.grace" {
		t.Fatalf("%+v", act)
	}
}

func TestHeartbeatsCountNextToNothing_D17(t *testing.T) {
	f := sending(t)
	f.Progress.Token = []byte("1")
	f.Count([]byte("5"), nil, Moment{})
	step(f, outcome(required(form("q"))))
	for _, want := range []float64{5.001, 5.002} {
		act := f.Step(Tick(true), Moment{Now: f.Clock.Beat})
		if act.Do != Tell || act.Say == "" || math.Abs(act.Count-want) > 1e-9 {
			t.Fatalf("%+v, want %v", act, want)
		}
	}
	if got := string(f.Progress.Params(5.001, "m")); got != `{"progressToken":1,"progress":5.001,"message":"m"}` {
		t.Fatalf("got %s", got)
	}
}

// A retry carries what somebody has just answered; it waits a short outage out.
func TestRetryWaitsForTheServer_D15(t *testing.T) {
	down := errors.New("down")
	f := inState[Gathering](t)
	expect(t, step(f, Answered("q", []byte(accept))), Send, "")
	expect(t, step(f, Unsent(down)), Send, "") // at once, once
	now := noon
	for _, wait := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		act := f.Step(Unsent(down), Moment{Now: now, Luck: .5})
		if act.Do != Wait || act.For != wait*time.Millisecond || f.State != Pausing || string(f.InputResponses()) != `{"q":`+accept+`}` {
			t.Fatalf("%+v in %q with %s", act, f.State, f.InputResponses())
		}
		now = f.Clock.Due
		if act = f.Step(Tick(true), Moment{Now: now}); act.Do != Send || f.Round != 1 {
			t.Fatalf("%+v in round %d", act, f.Round)
		}
	}
	act := f.Step(Busy(down, 30*time.Second), Moment{Now: now, Luck: 0})
	if act.Do != Wait || f.Clock.Due.Before(now.Add(30*time.Second)) {
		t.Fatalf("came back before the server wants: %+v", act)
	}
	now = f.Clock.Due
	f.Step(Tick(true), Moment{Now: now})
	if act = f.Step(Busy(down, DefaultRound), Moment{Now: now}); act.Do != Fail || !errors.Is(act.Err, down) {
		t.Fatalf("waits longer than a round: %+v", act)
	}
}

func TestFirstRoundDoesNotWaitForTheServer_D15(t *testing.T) {
	down := errors.New("down")
	f := sending(t)
	expect(t, step(f, Lost(down)), Send, "")
	if act := step(f, Unsent(down)); act.Do != Fail || !errors.Is(act.Err, down) {
		t.Fatalf("%+v", act)
	}
}

func TestQuestionIsAskedAgainOnce_C26(t *testing.T) {
	f := inState[Gathering](t)
	step(f, Asked("q", `"b-1"`, ""))
	expect(t, step(f, Unusable("q", "no", true)), Ask, "q")
	step(f, Asked("q", `"b-2"`, ""))
	if got := f.Input("q").ServerRequestID; got != `"b-2"` {
		t.Fatalf("asked as %s", got)
	}
	expect(t, step(f, Unusable("q", "no", true)), Send, "")
	if got := string(f.InputResponses()); got != `{"q":{"action":"cancel"}}` {
		t.Fatalf("got %s", got)
	}
}

func TestSilenceEndsWhatCannotBeCancelled_C34(t *testing.T) {
	f := sending(t)
	expect(t, step(f, outcome(required(form("q"), sampling))), Ask, "q,s")
	act := f.Step(Tick(true), Moment{Now: f.Clock.AnswerBy})
	abort, ok := errors.AsType[*Abort](act.Err)
	if !ok || abort.Key != "s" || keys(act.Withdraw) != "q,s" || keys(act.Ignored) != "q,s" {
		t.Fatalf("%+v", act)
	}
}

// Whoever asks in the server's place may know that the client has little patience; what the server asks then has its own time.
func TestAResultMayBoundTheTimeOfItsQuestions(t *testing.T) {
	f := sending(t)
	expect(t, step(f, outcome(required(form("q"))).Within(time.Second)), Ask, "q")
	if got := f.Clock.AnswerBy.Sub(noon); got != time.Second || f.AnswerTime() != time.Second {
		t.Errorf("the answer may take %v", got)
	}
	act := f.Step(Tick(true), Moment{Now: f.Clock.AnswerBy})
	if expect(t, act, Send, ""); keys(act.Ignored) != "q" || string(f.InputResponses()) != `{"q":{"action":"cancel"}}` {
		t.Errorf("%+v, and %s is sent", act, f.InputResponses())
	}
	expect(t, step(f, outcome(required(form("r")))), Ask, "r")
	if f.AnswerTime() != DefaultServerRequest {
		t.Errorf("the next one may take %v", f.AnswerTime())
	}
	f = sending(t)
	step(f, outcome(required(form("q"))).Within(2*DefaultServerRequest))
	if f.AnswerTime() != DefaultServerRequest {
		t.Errorf("more than the limit: %v", f.AnswerTime())
	}
}

func TestAnnouncementIsToldOnce_I11(t *testing.T) {
	f := sending(t)
	step(f, outcome(required(urlQuestion("u", "https://x"))))
	step(f, Asked("u", `"b-1"`, "e"))
	if act := step(f, Announced("e")); act.Do != Tell || len(act.Completed) != 1 || act.Completed[0] != "e" {
		t.Fatalf("%+v", act)
	}
	expect(t, step(f, Announced("e")), Nothing, "")
	expect(t, step(f, Announced("")), Nothing, "")
}

// A retry for which there is no memory waits for it for as long as its call may take, in steps that become longer; then its call has
// taken too long. The server's outages begin anew after that.
func TestARetryWaitsForMemoryUntilItsCallHasTakenTooLong(t *testing.T) {
	f := sending(t)
	expect(t, step(f, outcome([]byte(`{"resultType":"input_required","inputRequests":{`+form("q")+`}}`))), Ask, "q")
	expect(t, step(f, Answered("q", []byte(accept))), Send, "")
	now, short := noon, errors.New("no memory")
	for now.Before(f.Clock.Deadline) {
		act := f.Step(Short(short), Moment{Now: now})
		if act.Do != Wait || act.For > outageMost || f.Outage.Until != now.Add(f.limits().Round) {
			t.Fatalf("at %v: verb %d for %v, until %v", now, act.Do, act.For, f.Outage.Until)
		}
		for f.State == Pausing {
			now = f.Clock.Next()
			f.Step(Tick(true), Moment{Now: now})
		}
	}
	if f.State != Done {
		t.Errorf("in the end it is %q", f.State)
	}
}
