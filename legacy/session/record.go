package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
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
	Also          []string    `json:"also,omitempty"`
	Began         time.Time   `json:"began"`
	Conversation  []byte      `json:"conversation"`
	Waiting       []waiting   `json:"waiting,omitempty"`
	Payer         string      `json:"payer,omitempty"`   // in whose share of the store it is counted; "": in nobody's, or an older bridge's
	Relayed       bool        `json:"relayed,omitempty"` // it is a server's own: package internal/relayed
	Before        []digest    `json:"before,omitempty"`  // the records that led to this one, the latest last, where the store is shared

	size  int           // of one that was read
	ttl   time.Duration // of one that was read
	sum   digest        // of one that was read
	older bool          // what store.Record says of one that was read
}

// digest tells records of a session from each other.
type digest uint64

func digestOf(value []byte) digest {
	sum := sha256.Sum256(value)
	return digest(binary.BigEndian.Uint64(sum[:]))
}

// sessionRecordVersion counts the changes of sessionRecord that an older bridge could
// not go on from. Members may be added without one.
const sessionRecordVersion = 1

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

// digests are of records of one session, the latest last.
type digests []digest

// mostDigests bounds them, mostBefore those that a record names.
const (
	mostDigests = 256
	mostBefore  = 4
)

// last returns the latest n of them.
func (d digests) last(n int) digests { return d[max(0, len(d)-n):] }

// with adds that of another record, and of those that led to it where they are not there.
func (d digests) with(sum digest, before []digest) digests {
	for _, one := range before {
		if d.place(one) < 0 {
			d = append(d, one)
		}
	}
	if d.place(sum) != len(d)-1 || len(d) == 0 {
		d = append(d, sum)
	}
	return d.last(mostDigests)
}

// place returns where a record stands, by its latest place; -1: nowhere.
func (d digests) place(sum digest) int {
	for i, one := range slices.Backward(d) {
		if one == sum {
			return i
		}
	}
	return -1
}

// ReadRecord tells the people who run the bridge what a session's record says of it: not its id, which is a
// credential. Of one that is relayed to a server the bridge knows no version.
func ReadRecord(r *store.Record) (version mcp.Version, began time.Time, relayed bool, err error) {
	record, err := readSession(r)
	if err != nil {
		return "", began, false, err
	}
	return record.Version, record.Began, record.Relayed, nil
}
