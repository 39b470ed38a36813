// Package store is the contract of what keeps a bridge's state beyond its process:
// session records, suspended flows, the last words of streams, the leases of
// replicas. Values are bytes to it; what is in them is the business of whoever
// writes them.
//
//	bridge ──▶ Sealed ──▶ Store: Memory | boltstore | redisstore | your own
//
// Everything is kept by session. One session's records are read at once with Load
// and changed together with Commit; each is one round trip to the engine. A change
// names the version that it replaces, so of several replicas exactly one succeeds
// in taking a flow over, and one that was paused beyond its lease does no harm when
// it wakes up: its version is of yesterday.
//
// Package sessionstest has the contract as a test suite. An engine that passes it
// can be used.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Store keeps records. Its methods are safe for concurrent use. Each one but List is
// at most one round trip to the engine, and honours ctx as far as the engine can:
// after an error that is no *ConflictError it is unknown whether a change was made.
// Values that it returns must not be changed.
type Store interface {
	// Commit makes all changes to a session's records, each address at most once, or
	// none of them when one doesn't apply: the error is then a *ConflictError. When
	// it returns nil the changes are kept as well as the engine keeps anything.
	Commit(ctx context.Context, session string, changes ...Change) error
	// Get returns one record, or ErrNotFound. An engine may answer from a copy that
	// it is told about when it changes.
	Get(ctx context.Context, at Address) (Record, error)
	// Load returns all live records of a session, ordered by kind and id; none when
	// the session is unknown. It never answers from a copy.
	Load(ctx context.Context, session string) ([]Record, error)
	// Touch lets session records live longer, many at once. Those that are gone are
	// passed over. Versions stay as they are.
	Touch(ctx context.Context, touches ...Touch) error
	// End removes everything of a session, whatever the versions.
	End(ctx context.Context, session string) error
	// List returns what is kept, a page of sessions at a time, without values: about
	// limit records, but never a part of a session. It begins with after "" and goes
	// on with the page's Next until that is "". What changes meanwhile may be missing
	// or come twice. It is for people, and may take several round trips.
	List(ctx context.Context, after string, limit int) (Page, error)
	// Watch has changed called with the name of each session whose own record was read
	// here with Get and has changed since, or ended, be it here or in another process;
	// and with "" when the engine may have kept that to itself, so that any may have. It
	// is called once, before the store is used. It returns false, and nothing is ever
	// called, where one process alone has the store.
	Watch(changed func(session string)) bool
	// Ping reports whether the engine can be reached and written to.
	Ping(ctx context.Context) error
	// Close gives the engine up. Every method returns ErrClosed afterwards.
	Close() error
}

// Kind says what a record is.
type Kind byte

// The kinds of records.
const (
	Session  Kind = 's' // what a session is; at most one in a session, without an id
	Flow     Kind = 'f' // a suspended flow with its questions; when it is over, the end of its stream that was not fetched yet
	LastWord Kind = 'w' // such an end apart, as earlier builds kept it
	Lease    Kind = 'l' // a replica's, in the session Replicas
	Due      Kind = 'd' // that something is due to a flow, in a session for each second
	Refused  Kind = 'r' // what a server has refused those who brought credentials, in a session for each server
)

// Replicas is the session that holds the leases of all replicas.
const Replicas = "replicas"

// Address is where a record is kept. Ids are the writer's, of at most MaxID bytes.
type Address struct {
	Session string // see Name
	Kind    Kind
	ID      string
}

// String returns the address for logs and errors.
func (a Address) String() string { return fmt.Sprintf("%s/%c/%s", a.Session, a.Kind, a.ID) }

// Bounds of what a store takes.
const (
	MaxID    = 128      // bytes of a session's name, and of an id
	MaxValue = 64 << 20 // bytes of a record's value
)

// Record is what is kept at an address.
type Record struct {
	Address
	Version uint64 // 1 for a new one, one more with each change
	TTL     time.Duration
	Value   []byte
	// Err says why Value can't be read, although there is a record: ErrForeign or
	// ErrNewer. Such a record is to be left alone.
	Err error
	// Older says that it is sealed with another key than the first: whoever has it live on
	// writes it anew, since such keys are taken away some day.
	Older bool
}

// Change is one change of a Commit.
type Change struct {
	Kind Kind
	ID   string
	// Replaces is the version of the record that it applies to: 0 when there must be
	// none, Any when that doesn't matter.
	Replaces uint64
	// TTL is how long the record lives from now on, by the engine's clock. It is at
	// least a millisecond.
	TTL time.Duration
	// WithCalls has a session's own record live as long as the longest-lived of its others, where TTL is shorter: they may be
	// of replicas of which this one knows nothing, and are lost without it.
	WithCalls bool
	// Value is the record's new value. It is not changed, and not kept after Commit.
	Value []byte
	// Delete removes the record instead.
	Delete bool
}

// SizeOf returns how many bytes of values changes have.
func SizeOf(changes []Change) (bytes int) {
	for i := range changes {
		bytes += len(changes[i].Value)
	}
	return bytes
}

// Any as Change.Replaces stands for whatever version there is, or none.
const Any = ^uint64(0)

// Touch lets a session record live for TTL from now on.
type Touch struct {
	Session   string
	TTL       time.Duration
	WithCalls bool // as in Change
}

// Page is a part of a listing.
type Page struct {
	Records []Record // without values
	Next    string   // pass as after; "" at the end
}

// Why a store refuses.
var (
	ErrNotFound = errors.New("no such record")
	ErrClosed   = errors.New("the store is closed")
	ErrForeign  = errors.New("the record was sealed with another key, moved or tampered with")
	ErrNewer    = errors.New("the record was written by a newer version of the bridge")
	ErrCorrupt  = errors.New("the store's file is damaged")
)

// ConflictError says that a record has another version than a change replaces.
type ConflictError struct{ Address }

// Error names the record.
func (e *ConflictError) Error() string {
	return "record " + e.String() + " was changed by somebody else"
}

// Name returns the name under which a session is kept. The session's id is what its
// client proves itself with, so nobody who reads a store shall learn it.
func Name(sessionID string) string {
	sum := sha256.Sum256([]byte(sessionID))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])
}

// Check reports a commit that no engine takes. Engines call it.
func Check(session string, changes []Change) error {
	if session == "" || len(session) > MaxID {
		return fmt.Errorf("a session's name has 1 to %d bytes, not %d", MaxID, len(session))
	}
	for i, c := range changes {
		at := Address{session, c.Kind, c.ID}
		switch {
		case slices.ContainsFunc(changes[:i], func(o Change) bool { return o.Kind == c.Kind && o.ID == c.ID }):
			return fmt.Errorf("record %s: changed twice in one commit", at)
		case (c.Kind == Session) != (c.ID == "") || len(c.ID) > MaxID:
			return fmt.Errorf("record %s: an id has 1 to %d bytes, that of a session record none", at, MaxID)
		case c.Delete:
		case c.TTL < time.Millisecond:
			return fmt.Errorf("record %s: no record lives for %v", at, c.TTL)
		case len(c.Value) > MaxValue:
			return fmt.Errorf("record %s: %d bytes are more than a store takes (%d)", at, len(c.Value), MaxValue)
		}
	}
	return nil
}
