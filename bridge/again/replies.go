package again

import (
	"cmp"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// Replies are the calls that may wait for the same one to come again, oldest first. A
// session has its own. Requests without a session have those of their principal; whoever
// has neither a session nor a name cannot come back. Of either a request finds what the
// same person has called. Those of a bridge that has taken the place of another one find that one's calls, too: they
// are all in one place, and each has those that are its own.
type Replies struct {
	home *Replies // where the calls are; nil: here
	most int      // outcomes that are kept, and calls for which nobody waits that a principal without a session may have; a session's own limit holds

	mu    sync.Mutex
	calls map[string][]*Reply // of all whose home it is, by the principal of those without a session; nil until there is one
	shut  bool                // no outcome is kept any more
}

// Limit says how many may wait. It comes before all else.
func (t *Replies) Limit(most int) { t.most = most }

// Join has requests find the calls of other Replies, too, and theirs find its. It comes before all else.
func (t *Replies) Join(others *Replies) { t.home = others.place() }

// place is where the calls are.
func (t *Replies) place() *Replies {
	if t.home != nil {
		return t.home
	}
	return t
}

// Rejoin gives a request to a call that it repeats; nil: there is none. The call goes on when
// GoOn is called.
func (t *Replies) Rejoin(stranger string, version mcp.Version, caller downstream.Caller, req *downstream.Request, out downstream.Reply) *Rejoined {
	for _, p := range t.find(stranger, version, req) {
		if !p.flow.By(caller) {
			continue
		}
		if r := p.attach(req, out); r != nil {
			p.flow.Renew(caller)
			return r
		}
	}
	return nil
}

// Awaits reports whether a request may repeat a call, if it is its own.
func (t *Replies) Awaits(version mcp.Version, req *downstream.Request) bool {
	return len(t.find("", version, req)) > 0
}

// find returns the calls that a request repeats, whoever made them. Of several those come first that
// are furthest, then the older.
func (t *Replies) find(stranger string, version mcp.Version, req *downstream.Request) []*Reply {
	if t == nil || !MayAsk(req.Method) {
		return nil
	}
	found := t.of(stranger)
	if len(found) == 0 {
		return nil
	}
	var hash uint64 // of the request, once it is needed
	found = slices.DeleteFunc(found, func(p *Reply) bool {
		if !p.like(version, req) {
			return true
		}
		if hash == 0 {
			hash = hashOf(req)
		}
		return !p.repeats(req, hash)
	})
	if len(found) > 1 {
		slices.SortStableFunc(found, func(p, other *Reply) int { return cmp.Compare(other.rank(), p.rank()) })
	}
	return found
}

// of returns the calls of a session, or a principal without one, oldest first.
func (t *Replies) of(stranger string) []*Reply {
	at := t.place()
	at.mu.Lock()
	defer at.mu.Unlock()
	return slices.Clone(at.calls[stranger])
}

// add keeps a call for the same one to find. It is idempotent.
func (t *Replies) add(p *Reply) {
	at := t.place()
	at.mu.Lock()
	defer at.mu.Unlock()
	whose := p.of.Stranger
	if slices.Contains(at.calls[whose], p) {
		return
	}
	if at.calls == nil {
		at.calls = map[string][]*Reply{}
	}
	at.calls[whose] = append(at.calls[whose], p)
}

// like returns those of the same session or principal as p of which is holds.
func (t *Replies) like(p *Reply, is func(*Reply) bool) []*Reply {
	return slices.DeleteFunc(t.of(p.of.Stranger), func(p *Reply) bool { return !is(p) })
}

// evict returns the call that must make room for one that nobody waits for any more: a principal
// without a session has as many as a session. nil: there is room.
func (t *Replies) evict(p *Reply) *Reply {
	if t == nil || p.of.Stranger == "" {
		return nil
	}
	if all := t.like(p, (*Reply).detached); len(all) > t.most {
		return ofWhoHasMost(all)
	}
	return nil
}

// surplus returns the outcomes that must make room for p's: those first that have got to their clients by now. Those of a session's owner make none for others'.
func (t *Replies) surplus(p *Reply) (more []*Reply) {
	if t.isShut() {
		return []*Reply{p}
	}
	kept := t.like(p, func(other *Reply) bool { return other.of.Unproven == p.of.Unproven && keeper{other}.keeps() })
	if len(kept) <= t.most {
		return nil
	}
	kept = slices.DeleteFunc(kept, func(other *Reply) bool {
		delivered := keeper{other}.delivered()
		if delivered {
			more = append(more, other)
		}
		return delivered
	})
	if len(kept) > t.most {
		more = append(more, ofWhoHasMost(kept))
	}
	return more
}

// ofWhoHasMost returns the oldest of the calls, oldest first, of the person who has most of them;
// nil: there are none.
func ofWhoHasMost(calls []*Reply) (oldest *Reply) {
	whose, has, most := make([]string, len(calls)), map[string]int{}, 0
	for i, p := range calls {
		whose[i] = p.flow.Person()
		has[whose[i]]++
	}
	for i, person := range whose {
		if n := has[person]; n > most {
			oldest, most = calls[i], n
		}
	}
	return oldest
}

// Len returns how many there are of its own.
func (t *Replies) Len() int { return len(t.all()) }

// Awaited returns for how many of its own a request waits.
func (t *Replies) Awaited() (n int) {
	for _, p := range t.all() {
		if p.Waits() {
			n++
		}
	}
	return n
}

// forget is idempotent.
func (t *Replies) forget(p *Reply) {
	if t == nil {
		return
	}
	at := t.place()
	at.mu.Lock()
	defer at.mu.Unlock()
	whose := p.of.Stranger
	rest := slices.DeleteFunc(at.calls[whose], func(other *Reply) bool { return other == p })
	if len(rest) > 0 {
		at.calls[whose] = rest
	} else {
		delete(at.calls, whose)
	}
}

// Cancelled lets go of the outcome of a request that its client does not want any more, if it is the only
// one that goes by this id.
func (t *Replies) Cancelled(caller downstream.Caller, id jsonrpc.ID) {
	if t == nil {
		return
	}
	meant := slices.DeleteFunc(t.of(""), func(p *Reply) bool { return !(keeper{p}).keeps() || keeper{p}.lastID() != id || !p.flow.By(caller) })
	if len(meant) == 1 {
		keeper{meant[0]}.drop()
	}
}

// Close ends all of its own.
func (t *Replies) Close(cause error) {
	for _, p := range t.all() {
		p.flow.Close(cause)
	}
	t.Shut()
}

// Shut lets go of all outcomes of its own, and keeps none any more. What is under way goes on.
func (t *Replies) Shut() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.shut = true
	t.mu.Unlock()
	for _, p := range t.all() {
		keeper{p}.drop()
	}
}

func (t *Replies) isShut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shut
}

// all returns those of its own.
func (t *Replies) all() (own []*Reply) {
	if t == nil {
		return nil
	}
	at := t.place()
	at.mu.Lock()
	defer at.mu.Unlock()
	for _, calls := range at.calls {
		for _, p := range calls {
			if p.of.Calls == t {
				own = append(own, p)
			}
		}
	}
	return own
}

// MayAsk reports whether a server may ask something before it answers (D-I1).
func MayAsk(method string) bool {
	return method == mcp.MethodToolsCall || method == mcp.MethodPromptsGet || method == mcp.MethodResourcesRead
}
