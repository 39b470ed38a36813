// Package stray looks through a store for calls that nobody has: a process had them in memory when it died, or
// left them there. A store can only be asked by session, so that is a walk over all there is, in steps
// that leave a store of a million calls, and who waits for it, in peace.
//
//	start, Again ───────────────────┐
//	a replica is gone ──▶ claimed? ─┴▶ wanted ──▶ under way, a step at a time ──▶ done
//
// One replica walks for each that is gone, and sees whatever no living one has: if it goes before it is done,
// another one walks for it.
package stray

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Options of a Search. All are needed.
type Options struct {
	Store  store.Store
	Claims string                        // the session in which replicas agree which of them walks
	Others func() []downstream.ReplicaID // those that are alive, without this one
	// Found is told of each session that has calls, and whether those count that this replica seems to have. Its error is the
	// store's, which is to be asked again.
	Found func(ctx context.Context, session string, own bool) error
}

// Search is one process' part in that. It is of one goroutine.
type Search struct {
	seen     map[string]bool // sessions of the next page that were looked at before an error
	opt      Options
	others   []downstream.ReplicaID // as of the last look
	wanted   bool                   // a walk is
	left     bool                   // by this replica, which lives
	underWay bool
	own      bool   // it is for what this replica has left, too
	after    string // where it goes on
}

// New returns a Search that is about to walk: who had what is there at the start may be dead by now.
func New(opt Options) *Search { return &Search{opt: opt, wanted: true} }

// Again asks for another walk: this replica has left calls.
func (s *Search) Again() { s.wanted, s.left = true, true }

const (
	step    = 200             // records, of what is kept by session
	timeout = 5 * time.Second // of one operation
	// claimTTL is within what time replicas notice that one is gone. It is no longer than a lease: who is gone once
	// more needs another walk.
	claimTTL = 3 * time.Second
)

// GoOn walks for about so long, a step at least. After an error, which is the store's, it is to be called again later.
func (s *Search) GoOn(ctx context.Context, share time.Duration) error {
	s.notice(ctx)
	for until := time.Now().Add(share); s.underWay || s.wanted; {
		if !s.underWay {
			s.own = s.left
			s.underWay, s.wanted, s.left, s.after = true, false, false, ""
			clear(s.seen)
		}
		if err := s.walk(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil || !time.Now().Before(until) {
			break
		}
	}
	return nil
}

// notice looks whether a replica is gone for which this one is to walk. A walk that is under way may have passed
// what that one has left.
func (s *Search) notice(ctx context.Context) {
	now := s.opt.Others()
	for _, id := range s.others {
		if !slices.Contains(now, id) && s.claims(ctx, id) {
			s.wanted = true
		}
	}
	s.others = now
}

// claims reports whether this replica is the first to walk for one that is gone, or that cannot be said.
func (s *Search) claims(ctx context.Context, gone downstream.ReplicaID) bool {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.opt.Store.Commit(bounded, s.opt.Claims, store.Change{Kind: store.Due, ID: gone.String(), TTL: claimTTL})
	_, taken := errors.AsType[*store.ConflictError](err)
	return !taken
}

// walk looks at the next sessions.
func (s *Search) walk(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	page, err := s.opt.Store.List(bounded, s.after, step)
	if err != nil {
		return err
	}
	last := ""
	for i := range page.Records {
		at := page.Records[i].Address
		if at.Kind != store.Flow || at.Session == last {
			continue
		}
		if last = at.Session; s.seen[last] {
			continue
		}
		if err := s.opt.Found(ctx, last, s.own); err != nil {
			return err
		}
		if s.seen == nil {
			s.seen = map[string]bool{}
		}
		s.seen[last] = true
	}
	clear(s.seen)
	s.after, s.underWay = page.Next, page.Next != ""
	return nil
}
