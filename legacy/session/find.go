package session

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// Naming is what became of the session that a request names.
type Naming uint8

// What became of it.
const (
	Nameless    Naming = iota // it names none
	Known                     // it was found
	Unknown                   // there is none, for whom the request acts for
	Unavailable               // it may be in the store, and can't be had now
)

// Find returns the live session that a request names and who it acts for. To another
// principal the session doesn't exist (H-8).
func (set *Set) Find(r *http.Request) (s *Session, caller downstream.Caller, named Naming) {
	id := web.Header(r.Header, mcp.HeaderSessionID)
	if id == "" {
		return nil, downstream.Caller{}, Nameless
	}
	s, err := set.lookup(r, id)
	if err != nil {
		return nil, downstream.Caller{}, Unavailable
	}
	if s == nil {
		return nil, downstream.Caller{}, Unknown
	}
	caller, ok := set.callerOf(s, r)
	if !ok {
		return nil, downstream.Caller{}, Unknown
	}
	return s, caller, Known
}

// lookup finds a session by its id, in the store, too. It returns nil when there is
// none, and an error when it may be in the store but cannot be had now.
func (set *Set) lookup(r *http.Request, id string) (*Session, error) {
	s, ok := set.table.Get(id)
	switch {
	case !ok && set.keeper != nil:
		return set.keeper.restore(r.Context(), id, r)
	case ok && s.kept != nil && s.kept.stale.Load():
		set.keeper.refresh(s)
		if s.ended.Load() {
			return nil, nil
		}
	}
	return s, nil
}
