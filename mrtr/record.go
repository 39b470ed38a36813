package mrtr

import (
	"encoding/json"
	"errors"
	"fmt"
)

// recordVersion counts the changes of the encoding that an older bridge could not
// read. Members may be added without one: they are absent in older records, and
// ignored by older readers.
const recordVersion = 1

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

// Decode reads what Encode wrote, of this version or an older one. The flow owns its
// memory.
func Decode(b []byte) (*Flow, error) {
	r := record{Flow: new(Flow)}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("a flow's record cannot be read: %w", err)
	}
	switch {
	case r.V > recordVersion:
		return nil, ErrNewer
	case r.V < 1:
		return nil, errors.New("a flow's record has no version")
	}
	return r.Flow, nil
}
