package session

import (
	"crypto/sha256"
	"encoding/json"
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
	Also          []string    `json:"also,omitempty"`
	Began         time.Time   `json:"began"`
	Conversation  []byte      `json:"conversation"`
	Waiting       []waiting   `json:"waiting,omitempty"`
	Payer         string      `json:"payer,omitempty"`   // in whose share of the store it is counted; "": in nobody's, or an older bridge's
	Relayed       bool        `json:"relayed,omitempty"` // it is a server's own: package internal/relayed

	size  int           // of one that was read
	ttl   time.Duration // of one that was read
	sum   digest        // of one that was read
	older bool          // what store.Record says of one that was read
}

// digest tells records of a session from each other.
type digest [sha256.Size]byte

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

// mostDigests bounds them.
const mostDigests = 16

// with adds that of another record.
func (d digests) with(sum digest) digests {
	if len(d) == mostDigests {
		d = d[1:]
	}
	return append(d, sum)
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
