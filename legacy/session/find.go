package session

import (
	"errors"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
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
// principal the session doesn't exist (H-8). refusal is the server's, where a session is
// Unavailable for want of credentials that it accepts.
func (set *Set) Find(r *http.Request) (s *Session, caller downstream.Caller, named Naming, refusal *downstream.Refusal) {
	id := web.Header(r.Header, mcp.HeaderSessionID)
	if id == "" {
		return nil, downstream.Caller{}, Nameless, nil
	}
	s, err := set.lookup(r, id)
	if err != nil {
		refusal, _ = errors.AsType[*downstream.Refusal](err)
		return nil, downstream.Caller{}, Unavailable, refusal
	}
	if s == nil {
		return nil, downstream.Caller{}, Unknown, nil
	}
	caller, ok := set.callerOf(s, r)
	if !ok {
		return nil, downstream.Caller{}, Unknown, nil
	}
	return s, caller, Known, nil
}

// lookup finds a session by its id, in the store, too. It returns nil when there is
// none, and an error when it may be in the store but cannot be had now.
func (set *Set) lookup(r *http.Request, id string) (*Session, error) {
	s, ok := set.table.Get(id)
	switch {
	case !ok && set.keeper != nil && set.vacated.Load(): // it has just ended here, and is elsewhere with its next request
		return nil, downstream.ErrStopping
	case !ok && set.keeper != nil:
		return restorer{set.keeper}.restore(r.Context(), id, r)
	case ok && s.stored != nil:
		toucher{set.keeper}.used(s)
		if !s.stored.stale.Load() {
			break
		}
		if set.keeper.refresh(s); s.ended.Load() {
			return nil, nil
		}
	}
	return s, nil
}

// Recall reports whether a session is live here or in the store, from which the request that names
// it brings it back, or may be there for all that is known. It counts as a use of it.
func (set *Set) Recall(r *http.Request, id string) bool {
	if set.vacated.Load() {
		return set.Holds(id)
	}
	s, err := set.lookup(r, id)
	return s != nil || err != nil
}

// Remove ends the session with this id, at its client's wish, also where it has just left memory. After an error it goes on.
func (set *Set) Remove(id string) error {
	s, live := set.table.Get(id)
	switch {
	case live || set.keeper == nil:
	case set.vacated.Load(): // it may be elsewhere by now
		return downstream.ErrStopping
	default:
		var err error
		if s, err = (restorer{set.keeper}).restore(set.keeper.ctx, id, nil); err != nil {
			return err
		}
	}
	if s != nil && s.stored != nil {
		if err := set.keeper.end(s); err != nil {
			return err
		}
	}
	set.table.Remove(id)
	return nil
}

// EndStored ends the session that has this name in the store, and reports whether it has: one that is here, or
// that has calls to be ended with it.
func (set *Set) EndStored(name string) bool {
	if set.keeper == nil {
		return false
	}
	for _, use := range set.table.All() {
		if set.keeper.name(use.Value.rec.ID) == name {
			return set.table.End(use.Value.rec.ID, sessions.Dismissed)
		}
	}
	s := restorer{set.keeper}.restoreToEnd(name)
	return s != nil && set.table.End(s.rec.ID, sessions.Dismissed)
}

// Rotated finds the session of a message that comes with other credentials than
// those it is bound to: tokens are refreshed, stepped up, or obtained only after
// initialize. That the upstream accepts a token proves a user, not the user
// (H-6, Q6), so who brings such a token may begin calls, which the upstream authorizes, and
// answer their questions and fetch what they say, but finds no other stream and ends nothing. What they have under way is
// counted apart from the owner's.
//
// An accepted token takes the place of the one that the session is bound to if
// it claims the same issuer and subject, or if the session was opened without. A
// server that never sees it accepts nothing. A session that is only handed on exists for nobody else.
//
// The session was entered.
func (set *Set) Rotated(r *http.Request, msg *jsonrpc.Message) (*Session, downstream.Caller) {
	if !rotatedMay(msg) {
		return nil, downstream.Caller{}
	}
	return set.Resuming(r)
}

// Resuming is Rotated for a request that comes back for the stream of a call: there may be one that
// these credentials began.
func (set *Set) Resuming(r *http.Request) (*Session, downstream.Caller) {
	s, c := set.visited(r)
	if s != nil && s.conv.Orderly() {
		s.Exit()
		return nil, downstream.Caller{}
	}
	return s, c
}

// visited finds the session that a request names with other credentials than those it is
// bound to, and enters it: the server may take longer to say what it thinks of them than a session stays that nobody uses.
func (set *Set) visited(r *http.Request) (*Session, downstream.Caller) {
	c := set.Caller(r)
	if set.opt.Principal != nil || c.Authorization == "" {
		return nil, downstream.Caller{}
	}
	s, err := set.lookup(r, web.Header(r.Header, mcp.HeaderSessionID))
	for err == nil && s != nil && !s.Enter() {
		s, err = set.lookup(r, web.Header(r.Header, mcp.HeaderSessionID))
	}
	if err != nil || s == nil {
		return nil, downstream.Caller{}
	}
	c.Session, c.Account, c.Unproven = s.rec.ID, set.opt.Memory.Guest(c.Tenant), true
	if owner := s.owner(); !set.opt.CredentialsEndHere && (owner.auth == "" || sameSubject(owner.auth, c.Authorization)) {
		c.Rotation = owner.n
	}
	return s, c
}

// Reconsider looks whether a session is bound by now to the credentials of a request that it was not bound
// to when the request came: at another replica, of which this one may be told yet. The error says that
// nobody knows.
func (set *Set) Reconsider(s *Session, r *http.Request) (caller downstream.Caller, owns bool, err error) {
	if s.Stored() && s.Shared() {
		if err = set.keeper.look(s, true); err != nil {
			return caller, false, err
		}
	}
	caller, owns = set.callerOf(s, r)
	return caller, owns && !s.Ended(), nil
}

// Prove finds the session of a request whose token may be a newer one of its owner, and has the
// server asked about that token first. Unless it knows it, which a token alone that nobody has
// judged yet is never taken for, to the request the session doesn't exist (H-6). The session was entered.
func (set *Set) Prove(r *http.Request) (*Session, downstream.Caller) {
	s, visitor := set.visited(r)
	if s == nil {
		return nil, downstream.Caller{}
	}
	if visitor.Rotation != 0 && s.prove(visitor) {
		if caller, ok := set.callerOf(s, r); ok { // else it is bound to yet another one by now
			return s, caller
		}
	}
	s.Exit()
	return nil, downstream.Caller{}
}
