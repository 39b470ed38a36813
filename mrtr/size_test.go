package mrtr

import (
	"errors"
	"strings"
	"testing"
)

// answerOf is an answer of about so many bytes.
func answerOf(bytes int) []byte {
	return []byte(`{"action":"accept","content":{"text":"` + strings.Repeat("x", bytes) + `"}}`)
}

// Each answer of a round has the record of the call written anew with all that came before it.
func TestAnswersThatWaitForOthersAreBounded(t *testing.T) {
	const most = maxWaitingAnswers
	for name, tt := range map[string]struct {
		answers []int
		do      Verb
	}{
		"one that is larger alone":    {[]int{2 * most}, Ask},
		"several that are no larger":  {[]int{most / 3, most / 3}, Ask},
		"several that are larger":     {[]int{most / 2, most / 2}, Fail},
		"the last one may be as well": {[]int{most / 2, most / 3, most}, Send},
	} {
		f := sending(t)
		step(f, outcome(required(form("a"), form("b"), form("c"))))
		var act Action
		for i, bytes := range tt.answers {
			act = step(f, Answered(string(rune('a'+i)), answerOf(bytes)))
		}
		limit, _ := errors.AsType[*LimitReached](act.Err)
		if act.Do != tt.do || (limit != nil) != (tt.do == Fail) {
			t.Errorf("%s: verb %d, %v", name, act.Do, act.Err)
		}
	}
}

func TestAnswersThatATaskHasAreNotKept_G6(t *testing.T) {
	f := polling(t)
	step(f, TaskStatus([]byte(`{"status":"input_required","inputRequests":{`+form("a")+`,`+form("b")+`}}`)))
	before := f.Size()
	act := step(f, Answered("a", answerOf(1<<20)))
	if got := f.TaskResponse(act.Key); len(got) < 1<<20 || len(f.Undelivered()) != 1 {
		t.Fatalf("the task gets %s", got)
	}
	step(f, Updated("a", nil, false))
	if more := f.Size() - before; more > 2 || f.Input("a").Response == nil || len(f.Undelivered()) > 0 {
		t.Errorf("%d bytes more are kept", more)
	}
}

func TestSizeCountsWhatPeersSaid(t *testing.T) {
	f := sending(t)
	step(f, outcome([]byte(`{"resultType":"input_required","requestState":"`+strings.Repeat("s", 1000)+`","inputRequests":{`+
		urlQuestion(strings.Repeat("k", 1000), "https://x/"+strings.Repeat("u", 1000))+`,`+form("b")+`}}`)))
	f.Header = []byte(strings.Repeat("h", 1000))
	if got := f.Size(); got < 4000 || got > 4400 {
		t.Errorf("asked: %d", got)
	}
	step(f, Asked(f.Inputs[0].Key, `"1"`, strings.Repeat("e", 1000)))
	step(f, Answered(f.Inputs[0].Key, []byte(`{"action":"accept","content":"`+strings.Repeat("a", 1000)+`"}`)))
	if got := f.Size(); got < 8000 || got > 8500 { // and the consent: its address, its id
		t.Errorf("answered: %d", got)
	}
}
