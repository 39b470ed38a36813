package mrtr

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// polling returns a flow whose call became a task.
func polling(t *testing.T) *Flow {
	t.Helper()
	f := sending(t)
	f.TasksDeclared = true
	act := step(f, outcome([]byte(`{"resultType":"task","taskId":"t\u002d1","status":"working","pollIntervalMs":5}`)))
	if act.Do != Poll || act.For != pollLeast || f.State != Polling {
		t.Fatalf("G-3: %+v in %q", act, f.State)
	}
	return f
}

func TestTaskIsPolledToItsEnd_G1(t *testing.T) {
	f := polling(t)
	if got := string(f.Task.Params()); got != `{"taskId":"t\u002d1"}` {
		t.Fatalf("got %s", got)
	}
	expect(t, lapse(f), Fetch, "")
	act := step(f, TaskStatus([]byte(`{"resultType":"task","task":{"status":"working","pollIntervalMs":99999999}}`)))
	if act.Do != Poll || act.For != pollMost {
		t.Fatalf("G-3: %+v", act)
	}
	act = step(f, TaskStatus([]byte(`{"status":"completed","result":{"content":[]}}`)))
	if act.Do != Deliver || string(act.Result) != `{"content":[]}` || act.Task != nil || f.State != Done {
		t.Fatalf("G-9: %+v", act)
	}
}

func TestTaskFailures_G10(t *testing.T) {
	var rpc *jsonrpc.Error
	act := step(polling(t), TaskStatus([]byte(`{"status":"failed","error":{"code":-5,"message":"no"}}`)))
	if act.Do != Fail || !errors.As(act.Err, &rpc) || rpc.Code != -5 || act.Task != nil {
		t.Fatalf("%+v", act)
	}
	f := polling(t)
	expect(t, lapse(f), Fetch, "")
	if act = step(f, Unseen(rpc)); act.Do != Fail || act.Err != error(rpc) || act.Task == nil {
		t.Fatalf("%+v", act)
	}
	var abort *Abort
	if act = step(polling(t), TaskStatus([]byte(`{"status":"cancelled"}`))); act.Do != Fail || !errors.As(act.Err, &abort) {
		t.Fatalf("%+v", act)
	}
	var violation *Violation
	for _, raw := range []string{`{"status":"failed"}`, `{"status":"dreaming"}`, `{}`} {
		if act = step(polling(t), TaskStatus([]byte(raw))); !errors.As(act.Err, &violation) {
			t.Fatalf("%s: %+v", raw, act)
		}
	}
}

func TestTaskKeysAreAskedOnce_G6_G7(t *testing.T) {
	f := polling(t)
	asks := []byte(`{"status":"input_required","inputRequests":{` + form("a") + `,` + form("b") + `}}`)
	expect(t, step(f, TaskStatus(asks)), Poll, "a")
	expect(t, step(f, TaskStatus(asks)), Poll, "") // still shown, not asked again
	act := step(f, Answered("a", []byte(accept)))
	expect(t, act, Update, "b")
	if got := string(f.TaskResponse(act.Key)); got != `{"a":`+accept+`}` {
		t.Fatalf("got %s", got)
	}
	expect(t, step(f, TaskStatus(asks)), Poll, "")
	expect(t, step(f, Answered("a", []byte(accept))), Nothing, "")
	expect(t, step(f, Unanswered("b", "gone")), Update, "") // G-8: cancel
}

func TestTaskIsCancelledWithItsCall_G8_G12(t *testing.T) {
	f := polling(t)
	step(f, TaskStatus([]byte(`{"status":"input_required","inputRequests":{`+form("a")+`}}`)))
	act := step(f, Cancelled())
	if act.Do != Stop || act.Task == nil || keys(act.Withdraw) != "a" {
		t.Fatalf("G-12: %+v", act)
	}
	f = polling(t)
	step(f, TaskStatus([]byte(`{"status":"input_required","inputRequests":{`+sampling+`}}`)))
	if act = step(f, Unanswered("s", "gone")); act.Do != Fail || act.Task == nil {
		t.Fatalf("G-8: %+v", act)
	}
}

// A look at a task that was lost is made anew, whatever becomes of it later.
func TestALookAtATaskThatWasLostIsDueAgain(t *testing.T) {
	f := polling(t)
	expect(t, lapse(f), Fetch, "")
	expect(t, step(f, Lost(nil)), Nothing, "")
	expect(t, step(f, Unseen(errors.New("given up"))), Nothing, "")
	if !f.Clock.Due.Equal(noon) {
		t.Fatalf("the next look is due at %v", f.Clock.Due)
	}
	expect(t, lapse(f), Fetch, "")
}

func TestRoundsBeforeATaskEndWithIt_G15(t *testing.T) {
	f := sending(t)
	f.TasksDeclared = true
	step(f, outcome([]byte(`{"resultType":"input_required","requestState":"s","inputRequests":{`+form("a")+`}}`)))
	step(f, Answered("a", []byte(accept)))
	act := step(f, outcome([]byte(`{"resultType":"task","taskId":"t","status":"input_required","inputRequests":{`+form("a")+`}}`)))
	expect(t, act, Poll, "a") // D-I17: the same key is another question
	if f.RequestState != nil || act.For != time.Second {
		t.Fatalf("%+v", act)
	}
}
