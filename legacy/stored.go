package legacy

import (
	"time"

	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// StoredSession is what a store has of a session, for the people who run the bridge: no
// id, which is a credential, and nothing of what anybody said.
type StoredSession struct {
	Name       string // in the store
	Version    mcp.Version
	Began      time.Time
	Relayed    bool          // the server has it
	TTL        time.Duration // until it expires unless it is used
	Calls      []StoredCall  // that wait
	LastWords  int           // responses that were not fetched yet
	Unreadable int           // records of another key, or of a newer version
}

// StoredCall is a call that waits in a store.
type StoredCall struct {
	Questions int           // that are open
	TTL       time.Duration // how long its record lives at most
	Flow      []byte        // for who knows the backend's records; it holds secrets
}

// ReadStored reads the records of a session, as Load of a sealed store returns them. ok is
// false when they are not a session's.
func ReadStored(name string, records []store.Record) (s StoredSession, ok bool) {
	s.Name = name
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case store.Session:
			ok = true
			s.TTL = r.TTL
			var err error
			if s.Version, s.Began, s.Relayed, err = session.ReadRecord(r); err != nil {
				s.Unreadable++
			}
		case store.Flow:
			ok = true
			s.addCall(r)
		case store.LastWord:
			s.LastWords++
		}
	}
	return s, ok
}

func (s *StoredSession) addCall(r *store.Record) {
	switch told, err := exchange.ReadRecord(r); {
	case err != nil:
		s.Unreadable++
	case told.Over:
		s.LastWords++
	default:
		s.Calls = append(s.Calls, StoredCall{Questions: told.Questions, TTL: r.TTL, Flow: told.Flow})
	}
}
