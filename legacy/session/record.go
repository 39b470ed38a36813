package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// sessionRecord is what a session is, for another process to go on with.
type sessionRecord struct {
	V             int         `json:"v"`
	ID            string      `json:"id"`
	Version       mcp.Version `json:"version"`
	Principal     string      `json:"principal,omitempty"`
	Authorization string      `json:"authorization,omitempty"`
	Began         time.Time   `json:"began"`
	Conversation  []byte      `json:"conversation"`
}

// sessionRecordVersion counts the changes of sessionRecord that an older bridge could
// not go on from. Members may be added without one.
const sessionRecordVersion = 1

// get reads a session's record, nil when there is none. certain: no copy will do.
func (k *keeper) get(ctx context.Context, id string, certain bool) (*sessionRecord, uint64, error) {
	found, err := k.find(ctx, store.Address{Session: k.name(id), Kind: store.Session}, certain)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	record, err := readSession(&found)
	if err == nil && record.ID != id {
		err = fmt.Errorf("%w: its record is another's", downstream.ErrGone)
	}
	if err != nil {
		return nil, 0, err
	}
	return record, found.Version, nil
}

func readSession(r *store.Record) (*sessionRecord, error) {
	if r.Err != nil {
		return nil, fmt.Errorf("%w: %w", downstream.ErrGone, r.Err)
	}
	record := new(sessionRecord)
	if err := json.Unmarshal(r.Value, record); err != nil || record.V < 1 {
		return nil, fmt.Errorf("%w: its record cannot be read", downstream.ErrGone)
	}
	if record.V > sessionRecordVersion {
		return nil, fmt.Errorf("%w: %w", downstream.ErrGone, store.ErrNewer)
	}
	return record, nil
}

// ReadRecord tells the people who run the bridge what a session's record says of it: not its id, which is a
// credential.
func ReadRecord(r *store.Record) (version mcp.Version, began time.Time, err error) {
	record, err := readSession(r)
	if err != nil {
		return "", began, err
	}
	return record.Version, record.Began, nil
}

func (k *keeper) find(ctx context.Context, at store.Address, certain bool) (store.Record, error) {
	if !certain {
		return k.store.Get(ctx, at)
	}
	list, err := k.store.Load(ctx, at.Session)
	for i := range list {
		if list[i].Address == at {
			return list[i], nil
		}
	}
	if err == nil {
		err = store.ErrNotFound
	}
	return store.Record{}, err
}
