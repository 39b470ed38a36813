package exchange

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestEncodeWritesEveryField: what any record is, is what encoding/json reads back.
func TestEncodeWritesEveryField(t *testing.T) {
	records := rapid.Make[callRecord]()
	rapid.Check(t, func(t *rapid.T) {
		record := records.Draw(t, "record")
		plain, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		var got, want callRecord
		if err := json.Unmarshal(record.encode(), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		plainly(&want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v is not %+v", got, want)
		}
	})
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
