package mrtr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

func TestURLConsentIsRemembered_C31(t *testing.T) {
	f := sending(t)
	asked := required(urlQuestion("u", "https://x"))
	expect(t, step(f, outcome(asked)), Ask, "u")
	step(f, Asked("u", `"b-1"`, "id-1"))
	expect(t, step(f, Answered("u", []byte(`{"action":"accept"}`))), Send, "")
	for i, seconds := range []time.Duration{1, 2, 4} {
		act := step(f, outcome(asked))
		if act.Do != Wait || act.For != seconds*time.Second || act.Completed != nil {
			t.Fatalf("repeat %d: %+v", i, act)
		}
		expect(t, lapse(f), Send, "")
		if got := string(f.InputResponses()); got != `{"u":{"action":"accept"}}` {
			t.Fatalf("got %s", got)
		}
	}
	expect(t, step(f, outcome(asked)), Ask, "u") // Q5: prompt again
}

func TestURLCompletion_C32(t *testing.T) {
	consented := func() *Flow {
		f := sending(t)
		step(f, outcome(required(urlQuestion("u", "https://x"))))
		_, id := Identify([]byte(`{"elicitationId":"theirs"}`), nil)
		step(f, Asked("u", `"b-1"`, id))
		step(f, Answered("u", []byte(`{"action":"accept"}`)))
		return f
	}
	act := step(consented(), outcome([]byte(`{"content":[]}`)))
	if strings.Join(act.Completed, ",") != "theirs" {
		t.Fatalf("completed %v", act.Completed)
	}
	act = step(consented(), outcome(required(form("q"))))
	if act.Do != Ask || len(act.Completed) != 1 {
		t.Fatalf("%+v", act)
	}
	act = step(consented(), outcome([]byte(`{"content":[],"isError":true}`)))
	if act.Do != Deliver || act.Completed != nil {
		t.Fatalf("completed after a failure: %+v", act)
	}
}

// restored returns a flow as another process would read it, and its record.
func restored(t *testing.T, f *Flow) (again *Flow, record []byte) {
	t.Helper()
	record, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err = Decode(record); err != nil {
		t.Fatal(err)
	}
	return again, record
}

func TestFlowSurvivesStorage(t *testing.T) {
	f := sending(t)
	step(f, outcome([]byte(`{"resultType":"input_required","requestState":"\ud800","inputRequests":{`+form("q")+`}}`)))
	again, _ := restored(t, f)
	expect(t, step(again, Answered("q", []byte(accept))), Send, "")
	if string(again.RequestState) != `"\ud800"` {
		t.Fatalf("D-I3 across storage: %s", again.RequestState)
	}
}

func TestSuspendedEvictsTheOldest(t *testing.T) {
	s := NewSuspended[int](2)
	s.Remove(9)
	for _, flow := range []int{1, 2, 1} {
		if _, evicted := s.Add(flow); evicted {
			t.Fatalf("evicted while adding %d", flow)
		}
	}
	if oldest, evicted := s.Add(3); !evicted || oldest != 2 {
		t.Fatalf("evicted %d, %v; want 2", oldest, evicted)
	}
	s.Remove(1)
	if s.Len() != 1 {
		t.Fatalf("len %d", s.Len())
	}
}

// What a round asks for is read once, and not once more for each consent that is remembered.
func TestConsentsAreComparedWithWhatWasRead_C32(t *testing.T) {
	work := func(n int) float64 {
		f, inputs := sending(t), make([]Input, n)
		for i := range inputs {
			url := fmt.Sprintf("https://x/%d", i)
			inputs[i].Method, inputs[i].Params = "elicitation/create", []byte(`{"mode":"url","message":"a","url":"`+url+`"}`)
			f.URLs = append(f.URLs, URLMemory{URL: url})
		}
		return testing.AllocsPerRun(10, func() {
			if done := f.completedURLs(inputs, nil); len(done) > 0 || len(f.URLs) != n {
				t.Fatalf("%d are over, %d are left", len(done), len(f.URLs))
			}
		})
	}
	if few, many := work(16), work(64); many > 6*few {
		t.Errorf("%v for 64, %v for 16", many, few)
	}
}

// An input of many is judged once, however often another one is asked. What nobody could judge yet, and what
// came with the task's next questions, is looked at then.
func TestInputsAreJudgedOnce(t *testing.T) {
	f := sending(t)
	step(f, outcome(required(form("a"), form("b"), form("c"))))
	var seen string
	refused := errors.New("no words")
	judge := func(answer bool, err error) error {
		seen = ""
		return f.Judge(func(in *Input) (bool, error) { seen += in.Key; return answer, err })
	}
	for _, want := range []struct {
		answer bool
		err    error
		seen   string
	}{{false, nil, "abc"}, {false, refused, "a"}, {true, nil, "abc"}, {true, nil, ""}} {
		if err := judge(want.answer, want.err); err != want.err || seen != want.seen {
			t.Errorf("%+v: %q, %v", want, seen, err)
		}
	}
	f.Inputs = append(f.Inputs, Input{InputRequest: InputRequest{Key: "d"}}, Input{ServerRequestID: `"b-1"`}, Input{Response: []byte("{}")})
	if err := judge(true, nil); err != nil || seen != "d" {
		t.Errorf("of new ones: %q, %v", seen, err)
	}
}

// D-I7: keys go up as they came, from whichever process. What else the server tells its questions apart by stays exact, too.
func TestKeysSurviveStorage_DI7(t *testing.T) {
	f := sending(t)
	ask := `"\ud800":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a/\ud800","elicitationId":"\ud800"}}`
	step(f, outcome([]byte(`{"resultType":"input_required","inputRequests":{`+ask+`,`+strings.ReplaceAll(ask, "d800", "d801")+`}}`)))
	f.Inputs[0].ElicitationID = "\xed\xa0\x80"
	f.URLs = []URLMemory{{URL: "https://a/\xed\xa0\x80", ElicitationID: "\xed\xa0\x81"}}
	f.Method = "x/\xed\xa0\x80"
	again, stored := restored(t, f)
	if again.Method != f.Method {
		t.Errorf("the method is %q", again.Method)
	}
	if got := []string{again.Inputs[0].Key, again.Inputs[1].Key, again.Inputs[0].ElicitationID, again.URLs[0].URL, again.URLs[0].ElicitationID}; !slices.Equal(got,
		[]string{"\xed\xa0\x80", "\xed\xa0\x81", "\xed\xa0\x80", "https://a/\xed\xa0\x80", "\xed\xa0\x81"}) {
		t.Errorf("got %q of %s", got, stored)
	}
}

// A question whose message holds half a character was another one after its record was read.
func TestAConsentOutlivesARecordWhateverItsMessage_C31(t *testing.T) {
	question := []byte(`{"mode":"url","url":"https://example.com/consent","message":"half \ud83d of a character","elicitationId":"e1"}`)
	in := Input{InputRequest: InputRequest{Key: "k", Method: mcp.MethodElicitationCreate, Params: question}, Response: []byte(`{"action":"accept"}`), ElicitationID: "e1"}
	f := &Flow{Method: mcp.MethodToolsCall}
	f.rememberURL(&in)
	again := Input{InputRequest: InputRequest{Key: "k2", Method: mcp.MethodElicitationCreate, Params: question}}
	if f.consent(&again) == nil {
		t.Fatal("no consent is remembered")
	}
	read, _ := restored(t, f)
	if read.consent(&again) == nil {
		t.Errorf("after the record was read the person is asked again: the message is %q, was %q", read.URLs[0].Message, f.URLs[0].Message)
	}
}
