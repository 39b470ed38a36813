// Package sessions owns what outlives a single exchange with a client: the
// table of live sessions, and the event streams that clients can leave and
// resume.
//
// A session costs memory for as long as its client thinks, so nothing here
// starts a goroutine or a timer per session or per stream, and nothing is
// allocated before it is needed. The package knows neither HTTP nor the wire
// form of events; package legacy carries streams to clients.
package sessions

import (
	"crypto/rand"

	"github.com/mcpbridge/bridge/mcp"
)

// Record is what initialize settled about a session's transport. What the
// client declared about itself belongs to its conversation, in package bridge.
type Record struct {
	ID        string
	Version   mcp.Version
	Principal string // H-6: who opened the session; "" is anonymous
}

// NewID returns an unguessable id of 26 visible ASCII characters that
// carries 130 bits of randomness.
func NewID() string { return rand.Text() }

// Cause says why a session left the table. It is an error so that it can be
// handed on as the reason why the session's flows end.
type Cause int32

// The distinct ends of a session.
const (
	Removed   Cause = iota + 1 // its client ended it
	Expired                    // idle for too long
	Evicted                    // the least recently used one when the table was full
	Closed                     // the bridge shuts down
	Rested                     // left to the store until somebody comes for it
	Outdated                   // its server has become another one
	Dismissed                  // who runs the bridge ended it
	Elsewhere                  // its record is gone: its client ended it at another replica, or who runs the bridges did
)

// Error names the cause in words.
func (c Cause) Error() string {
	switch c {
	case Removed:
		return "session ended"
	case Expired:
		return "session expired"
	case Evicted:
		return "session evicted: too many sessions"
	case Closed:
		return "bridge is shutting down"
	case Rested:
		return "session left to the store"
	case Outdated:
		return "the session has ended, for its server has become another one"
	case Dismissed:
		return "ended by who runs the bridge"
	case Elsewhere:
		return "the session was ended at another replica or by who runs the bridge"
	}
	return "session ended for an unknown reason"
}
