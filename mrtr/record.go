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
