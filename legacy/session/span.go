package session

import (
	"sync"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// span is how long the store has a session and those of its calls that outlive what a session's record is
// given without them. A call without its session is lost, and only a process that has it in memory keeps
// that from expiring: so the record is to last as long from the moment that the call is in the store.
type span struct {
	mu    sync.Mutex
	until time.Time            // the session's own record lasts, as far as this process knows
	calls map[string]time.Time // until when their records do, by id
}

// begin notes records of calls that are about to be written, and reports whether the session's does not last as
// long as one of them. ttl is what that is given without calls.
func (p *span) begin(changes []store.Change, ttl time.Duration) (short bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range changes {
		c := &changes[i]
		if c.Kind != store.Flow || c.Delete {
			continue
		}
		until := now.Add(c.TTL)
		if c.TTL > ttl && until.After(p.calls[c.ID]) {
			p.callLocked(c.ID, until)
		}
		short = short || until.After(p.until)
	}
	return short
}

// done notes that they were written: those that are removed, and last words, need the session no longer than they last.
func (p *span) done(changes []store.Change, ttl time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range changes {
		switch c := &changes[i]; {
		case p.calls[c.ID].IsZero():
		case c.Delete, c.TTL <= ttl:
			delete(p.calls, c.ID)
		default:
			p.callLocked(c.ID, time.Now().Add(c.TTL))
		}
	}
}

func (p *span) callLocked(id string, until time.Time) {
	if p.calls == nil {
		p.calls = map[string]time.Time{}
	}
	p.calls[id] = until
}

// has notes a call that was found in the store.
func (p *span) has(id string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callLocked(id, until)
}

// reaches reports whether the session's own record lasts until then, as far as this process knows, which is yet to write one where it knows nothing.
func (p *span) reaches(then time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until.IsZero() || p.until.After(then)
}

// written notes until when the session's record lasts, and reports whether it is too short by now: the call came meanwhile.
func (p *span) written(until time.Time) (short bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = until
	return p.longestLocked().After(until)
}

func (p *span) longest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longestLocked()
}

func (p *span) longestLocked() (longest time.Time) {
	now := time.Now()
	for id, until := range p.calls {
		if !until.After(now) {
			delete(p.calls, id)
		} else if until.After(longest) {
			longest = until
		}
	}
	return longest
}
