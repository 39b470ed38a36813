package mrtr

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// life drives a flow at random.
type life struct {
	*rapid.T
	flow *Flow
	now  time.Time
}

// begin puts a new flow in the place of the one that is over.
func (l *life) begin() {
	limits := Limits{Rounds: 4, StateOnly: 3, Call: 20 * time.Minute, Round: time.Minute, ServerRequest: 30 * time.Second, Grace: 45 * time.Second}.WithDefaults()
	l.flow = &Flow{
		ID: "7", Method: "tools/call", Params: []byte(`{"name":"x"}`), Principal: "p", Capabilities: []byte(everyCapability), Level: "info",
		TasksDeclared: rapid.Bool().Draw(l.T, "tasks"), Limits: &limits,
	}
	if rapid.Bool().Draw(l.T, "progress") {
		l.flow.Progress.Token = []byte(`"token"`)
	}
	l.flow.Step(Started(), Moment{Now: l.now})
}

func (l *life) pick(label string, texts ...string) string {
	return rapid.SampledFrom(texts).Draw(l.T, label)
}

// input returns one of the flow's keys, or a foreign one.
func (l *life) input() string {
	all := []string{"foreign"}
	for i := range l.flow.Inputs {
		all = append(all, l.flow.Inputs[i].Key, l.flow.Inputs[i].Key)
	}
	return l.pick("key", all...)
}

func (l *life) requests() string {
	return l.pick("requests", `{}`, `{`+form("a")+`}`, `{`+form("a")+`,`+form("b")+`,`+sampling+`}`, `{`+roots+`,`+urlQuestion("u", "https://x")+`}`,
		`{`+urlQuestion("u", "https://x")+`}`, `{"x":{"method":"ping"}}`)
}

func (l *life) result() []byte {
	if l.flow.TasksDeclared && rapid.Bool().Draw(l.T, "task") {
		return []byte(`{"resultType":"task","taskId":"t\u002d1","status":"working","statusMessage":"on it"}`)
	}
	return []byte(l.pick("result", `{"content":[]}`, `{"content":[],"isError":true}`, `{"resultType":"incomplete"}`,
		`{"resultType":"input_required","requestState":"\ud800","inputRequests":`+l.requests()+`}`,
		`{"resultType":"input_required","inputRequests":`+l.requests()+`}`))
}

func (l *life) status() []byte {
	return []byte(l.pick("status", `{"status":"working","statusMessage":"still"}`, `{"status":"input_required","inputRequests":`+l.requests()+`}`,
		`{"status":"completed","result":{"content":[]}}`, `{"status":"failed","error":{"code":1,"message":"no"}}`, `{"status":"odd"}`))
}

// event draws an event, mostly one that the state waits for.
func (l *life) event() Event {
	broken := errors.New("broken")
	tick := func() Event { return Tick(l.pick("client", "there", "there", "there", "gone") == "there") }
	result := func() Event { return outcome(l.result()) }
	status := func() Event { return TaskStatus(l.status()) }
	answered := func() Event {
		return Answered(l.input(), []byte(l.pick("answer", accept, `{"action":"accept"}`, `{"action":"decline"}`, `{}`)))
	}
	asked := func() Event { return Asked(l.input(), `"b-1"`, l.pick("elicitation", "", "e-1")) }
	unsent := func() Event { return Unsent(broken) }
	unusable := func() Event { return Unusable(l.input(), "no use", rapid.Bool().Draw(l.T, "again")) }
	var likely []func() Event
	switch l.flow.State {
	case Sending:
		likely = []func() Event{result, result, result, unsent, tick}
	case Gathering:
		likely = []func() Event{asked, answered, answered, answered, tick, unusable}
	case Polling:
		likely = []func() Event{asked, answered, status, status, tick, tick}
	default:
		likely = []func() Event{tick}
	}
	all := []func() Event{
		Started, result, status, answered, asked, tick, unsent, unusable,
		func() Event { return Unanswered(l.input(), "no answer") },
		func() Event { return Housed(Address{"session", 7}) },
		func() Event { return Announced(l.pick("announced", "", "e-1", "e-2")) },
		func() Event { return Busy(broken, time.Second) },
		func() Event { return Lost(broken) },
		func() Event { return Unseen(broken) },
		func() Event { return Updated(l.input(), nil, false) },
		func() Event { return Updated(l.input(), broken, l.pick("again", "no", "yes") == "yes") },
	}
	switch l.pick("kind", "likely", "likely", "likely", "likely", "likely", "likely", "any", "any") {
	case "any":
		all = append(all, Cancelled, func() Event { return Failed(broken) })
		return rapid.SampledFrom(all).Draw(l.T, "event")()
	}
	return rapid.SampledFrom(likely).Draw(l.T, "likely")()
}

// moment lets some time pass, often up to when the flow wants a tick.
func (l *life) moment() Moment {
	switch next := l.flow.Clock.Next(); l.pick("wait", "until it is due", "a little", "not at all") {
	case "until it is due":
		if next.After(l.now) {
			l.now = next
		}
	case "a little":
		l.now = l.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(l.T, "ms")) * time.Millisecond)
	}
	return Moment{Now: l.now, Luck: rapid.Float64Range(0, .99).Draw(l.T, "luck")}
}

// again returns the flow as another process would read it.
func (l *life) again() *Flow {
	stored := l.record(l.flow)
	f, err := Decode(stored)
	if err != nil {
		l.Fatal(err)
	}
	return f
}

func (l *life) record(f *Flow) []byte {
	stored, err := f.Encode()
	if err != nil {
		l.Fatal(err)
	}
	return stored
}

// A flow that is stored and read before every event does what one does that never
// left its process.
func TestFlowIsItsRecord(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := &life{T: rt, now: noon}
		l.begin()
		for range 30 {
			if l.flow.Over() {
				l.begin()
			}
			other := l.again()
			if l.flow.Task != nil {
				l.flow.Task.refused = nil // which is not kept
			}
			ev, at := l.event(), l.moment()
			act, same := l.flow.Step(ev, at), other.Step(ev, at)
			if !reflect.DeepEqual(act, same) {
				rt.Fatalf("after %v:\n%+v\n%+v", ev, act, same)
			}
			count := []byte(l.pick("count", "0", "1", "2.5", "9"))
			value, total, ok := l.flow.Count(count, []byte("10"), at)
			if v, of, too := other.Count(count, []byte("10"), at); ok != too || !bytes.Equal(v, value) || !bytes.Equal(of, total) {
				rt.Fatalf("progress %s: %s of %s, %s of %s", count, value, total, v, of)
			}
			if a, b := l.record(l.flow), l.record(other); !bytes.Equal(a, b) {
				rt.Fatalf("after %v:\n%s\n%s", ev, a, b)
			}
			if a, b := l.flow.InputResponses(), other.InputResponses(); !bytes.Equal(a, b) {
				rt.Fatalf("answers %s and %s", a, b)
			}
			l.sound(&act)
			l.flow = other
		}
	})
}

// sound checks what holds after every step.
func (l *life) sound(act *Action) {
	f := l.flow
	ends := act.Do == Deliver || act.Do == Fail || act.Do == Stop
	switch {
	case ends && !f.Over():
		l.Fatalf("an end in %q", f.State)
	case act.Do == Send && f.State != Sending:
		l.Fatalf("sends in %q", f.State)
	case f.Round > f.Limits.Rounds || f.StateOnly > f.Limits.StateOnly+1:
		l.Fatalf("D-I18: round %d, %d without questions", f.Round, f.StateOnly)
	}
	if waits := f.State == Gathering || f.State == Polling; waits && len(l.again().askable()) > 0 { // whoever makes the next step may have nobody to ask
		l.Fatalf("not all is asked that can be in %q", f.State)
	}
	shown := 0
	for _, in := range f.Outstanding() {
		if in.asksPerson() {
			shown++
		}
	}
	if shown > 1 {
		l.Fatalf("C-37: %d elicitations at once", shown)
	}
}

func TestRecordsOfOthersAreRefused(t *testing.T) {
	for stored, want := range map[string]error{`{"v":99}`: ErrNewer, `{}`: nil, `{"v":1`: nil, `7`: nil} {
		if _, err := Decode([]byte(stored)); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", stored, err)
		}
	}
}

// What a newer bridge has added is ignored, what an older one did not write is absent.
func TestRecordsMayHaveMoreOrLess(t *testing.T) {
	f, err := Decode([]byte(`{"v":2,"id":"1","method":"ping","state":"sending","of the future":{}}`))
	if err != nil || f.ID != "1" || f.State != Sending {
		t.Fatalf("%+v, %v", f, err)
	}
}
