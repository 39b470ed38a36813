package mrtr

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEncodeWritesEveryField: what is read back of any flow is what encoding/json would
// have brought back, so that no field is forgotten.
func TestEncodeWritesEveryField(t *testing.T) {
	at := rapid.Custom(func(t *rapid.T) time.Time { return time.UnixMicro(rapid.Int64Range(0, 1<<51).Draw(t, "at")).UTC() })
	state := rapid.Map(rapid.SampledFrom([]State{Sending, Gathering, Pausing, Polling, Done}), func(s State) State { return s })
	flows := rapid.MakeCustom[Flow](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[time.Time](): at.AsAny(),
		reflect.TypeFor[State]():     state.AsAny(),
		reflect.TypeFor[string]():    rapid.StringN(0, 8, 20).AsAny(),
		reflect.TypeFor[json.RawMessage](): rapid.Map(rapid.StringN(0, 8, 20), func(s string) json.RawMessage {
			text, _ := json.Marshal(map[string]string{s: s})
			return text
		}).AsAny(),
	}})
	rapid.Check(t, func(t *rapid.T) {
		f := flows.Draw(t, "flow")
		text, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(record{recordVersion, &f})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		want, err := Decode(plain)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("\n%s\n%s", text, plain)
		}
	})
}

// TestRecordsAreNotWrittenOver: a record stays as it is when others are made, and takes no more than it needs.
func TestRecordsAreNotWrittenOver(t *testing.T) {
	var records [][]byte
	for i := range 4 {
		text, err := (&Flow{Round: i + 1}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if cap(text) > 2*len(text) {
			t.Errorf("%d bytes take %d", len(text), cap(text))
		}
		records = append(records, text)
	}
	for i, text := range records {
		if f, err := Decode(text); err != nil || f.Round != i+1 {
			t.Errorf("record %d is %s, %v", i, text, err)
		}
	}
}
