package exchange

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// TestRecordsAreReadAsTheyWereWritten: whatever a record is, and whichever version of the
// bridge wrote it.
func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	records := rapid.Make[callRecord]()
	rapid.Check(t, func(t *rapid.T) {
		want := records.Draw(t, "record")
		for i := range want.Events {
			want.Events[i].Size = 0 // of what is written only
		}
		want.V = inlineVersion
		inline, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		want.V = callRecordVersion
		_ = want.written(func(value []byte) error {
			for _, value := range [][]byte{inline, value} {
				got, err := readCall(&store.Record{Value: value})
				if err != nil {
					t.Fatal(err)
				}
				plainly(got)
				plainly(&want)
				if !reflect.DeepEqual(*got, want) {
					t.Fatalf("%+v is not %+v", *got, want)
				}
			}
			return nil
		})
	})
}

// TestRecordsThatAreNone: whatever is missing, nothing is made up.
func TestRecordsThatAreNone(t *testing.T) {
	for value, want := range map[string]error{
		"":    errUnreadable,
		"{}":  errUnreadable,
		"x\n": errUnreadable,
		`{"v":2,"events":[{"seq":1,"size":3}]}` + "\nab": errUnreadable,
		`{"v":2,"events":[{"seq":1,"size":-1}]}` + "\n":  errUnreadable,
		`{"v":3}` + "\nabc":                              store.ErrNewer,
	} {
		if _, err := readCall(&store.Record{Value: []byte(value)}); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", value, err, want)
		}
	}
}

// plainly makes empty what is nothing: to whoever reads a record both are the same.
func plainly(r *callRecord) {
	if len(r.Events) == 0 {
		r.Events = nil
	}
	if len(r.Flow) == 0 {
		r.Flow = nil
	}
	for i := range r.Events {
		if len(r.Events[i].Data) == 0 {
			r.Events[i].Data = nil
		}
	}
}

// TestACallHoldsTheQuestionsThatWereKept and no other: those never left.
func TestACallHoldsTheQuestionsThatWereKept(t *testing.T) {
	kept := &Exchange{stored: &storedCall{record: callRecord{Events: []storedEvent{{ID: `"one"`}}}}}
	for question, want := range map[jsonrpc.ID]bool{`"one"`: true, `"two"`: false} {
		if got := kept.Holds(question); got != want || new(Exchange).Holds(question) {
			t.Errorf("%s: %v", question, got)
		}
	}
}

// Who unloads calls looks at them one after the other, and waits for none that is being written: a large one may take its time.
func TestACallThatIsBeingWrittenIsNotWaitedFor(t *testing.T) {
	ex := &Exchange{stored: &storedCall{version: 1}}
	ex.stream.Store(new(sessions.Stream))
	if _, away := ex.Away(0); !away {
		t.Error("a call that waits may not leave")
	}
	ex.stored.mu.Lock()
	defer ex.stored.mu.Unlock()
	if _, away := ex.Away(0); away {
		t.Error("a call leaves while its record is being written")
	}
}
