package vouch

import (
	"context"
	"encoding/json"

	"github.com/mcpbridge/bridge/sessions/store"
)

// record is where a store keeps what a server has refused.
type record struct {
	store   store.Store
	session string
}

const recordID = "refused"

// read returns what is kept, and the record without its value: the zero one when there is none.
func (r *record) read(ctx context.Context) (told refusals, at store.Record, err error) {
	list, err := r.store.Load(ctx, r.session) // of which no engine has an old copy
	if err != nil {
		return told, at, err
	}
	for _, at := range list {
		if at.Kind != store.Refused || at.ID != recordID {
			continue
		}
		err := at.Err
		if err == nil {
			err = json.Unmarshal(at.Value, &told)
		}
		at.Value = nil
		return told, at, err
	}
	return told, at, nil
}

func (r *record) write(ctx context.Context, told refusals, replaces uint64) error {
	value, err := json.Marshal(told)
	if err != nil {
		return err
	}
	return r.store.Commit(ctx, r.session, store.Change{Kind: store.Refused, ID: recordID, Replaces: replaces, TTL: recordLife, Value: value})
}

// Recall learns what other processes before the server, and the one before this, have had refused. It
// asks the store, where there is one, each time. After an error they may know more.
func (c *Credentials) Recall(ctx context.Context) error {
	if c.record == nil {
		return nil
	}
	told, _, err := c.record.read(ctx)
	if err == nil {
		c.hear(told)
	}
	return err
}
