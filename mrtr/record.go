package mrtr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/rawjson"
)

// recordVersion counts the changes of the encoding that an older bridge could not
// read. Members may be added without one: they are absent in older records, and
// ignored by older readers.
const recordVersion = 2

// ErrNewer is the error of Decode for a record that a newer bridge wrote. It is to be
// left alone.
var ErrNewer = errors.New("the record was written by a newer version of the bridge")

type record struct {
	V int `json:"v"`
	*Flow
}

// Recall takes back, of what another process asked, the questions that never left: as heard tells of their
// ids. They are asked anew with [Lost].
func (f *Flow) Recall(heard func(serverRequestID string) bool) {
	for _, in := range f.Outstanding() {
		if !heard(in.ServerRequestID) {
			in.Asked, in.ServerRequestID, in.ElicitationID = false, "", ""
		}
	}
}

// onInterrupted goes on where nobody knows what came of the request in flight, if there is one: a
// look at a task changes nothing, so it is due again.
func (f *Flow) onInterrupted(at Moment) Action {
	if f.State == Polling && f.Task.Fetching {
		f.Task.Fetching = false
		f.Clock.Due = at.Now
	}
	if ask := f.askable(); len(ask) > 0 {
		return f.ask(ask, at)
	}
	return Action{}
}

// Decode reads what Encode wrote. The flow owns its memory. Version 1, which no release
// wrote, had JSON in base64 and times in words.
func Decode(b []byte) (*Flow, error) {
	r := record{Flow: new(Flow)}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("a flow's record cannot be read: %w", err)
	}
	switch {
	case r.V > recordVersion:
		return nil, ErrNewer
	case r.V < recordVersion:
		return nil, errors.New("the record of a flow is from before the first release of the bridge, or none")
	}
	r.readNames(b)
	return r.Flow, nil
}

// readNames reads again what goes up as it came (D-I7), or is compared with that: encoding/json takes
// every lone surrogate for the same character.
func (f *Flow) readNames(b []byte) {
	if !bytes.Contains(b, []byte(`\ud`)) {
		return
	}
	f.Method, _ = rawjson.Name(rawjson.Get(b, "method"))
	i := 0
	for in := range rawjson.Elements(rawjson.Get(b, "inputs")) {
		f.Inputs[i].Key, _ = rawjson.Name(rawjson.Get(in, "key"))
		f.Inputs[i].ElicitationID, _ = rawjson.Name(rawjson.Get(in, "elicitationId"))
		i++
	}
	i = 0
	for url := range rawjson.Elements(rawjson.Get(b, "urls")) {
		f.URLs[i].URL, _ = rawjson.Name(rawjson.Get(url, "url"))
		f.URLs[i].Message, _ = rawjson.Name(rawjson.Get(url, "message"))
		f.URLs[i].ElicitationID, _ = rawjson.Name(rawjson.Get(url, "elicitationId"))
		i++
	}
}

// clockRecord is a Clock in nanoseconds since 1970; 0 never comes.
type clockRecord struct {
	Began    int64 `json:"began,omitempty"`
	Deadline int64 `json:"deadline,omitempty"`
	Due      int64 `json:"due,omitempty"`
	AnswerBy int64 `json:"answerBy,omitempty"`
	Beat     int64 `json:"beat,omitempty"`
	Look     int64 `json:"look,omitempty"`
	Gone     bool  `json:"gone,omitempty"`
}

func (c *Clock) record() clockRecord {
	return clockRecord{nanos(c.Began), nanos(c.Deadline), nanos(c.Due), nanos(c.AnswerBy), nanos(c.Beat), nanos(c.Look), c.Gone}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// MarshalJSON implements json.Marshaler.
func (c Clock) MarshalJSON() ([]byte, error) { return json.Marshal(c.record()) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Clock) UnmarshalJSON(text []byte) error {
	var r clockRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	*c = Clock{moment(r.Began), moment(r.Deadline), moment(r.Due), moment(r.AnswerBy), moment(r.Beat), moment(r.Look), r.Gone}
	return nil
}

func moment(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
