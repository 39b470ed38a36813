package again

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
)

// Replies are the calls that wait for the same one to come again, oldest first. A
// session has its own. Requests without a session have those of their principal; whoever
// has neither a session nor a name cannot come back. Of either a request finds what the
// same person has called.
type Replies struct {
	most int // that a principal without a session may have; a session's own limit holds

	mu    sync.Mutex
	calls map[string][]*Reply // by the principal of those without a session; nil until there is one
}

// Limit says how many a principal without a session may have. It comes before all else.
func (t *Replies) Limit(most int) { t.most = most }

// Rejoin gives a request to a call that it repeats; nil: there is none. The call goes on when
// GoOn is called.
func (t *Replies) Rejoin(stranger string, version mcp.Version, caller downstream.Caller, req *downstream.Request, out downstream.Reply) *Rejoined {
	for _, p := range t.find(stranger, version, caller, req) {
		if open, held, ok := p.attach(req, out); ok {
			p.flow.Renew(caller)
			return &Rejoined{p, out, open, held}
		}
	}
	return nil
}

// find returns the calls that a request may repeat. Of several the answered ones come
// first, then the older.
func (t *Replies) find(stranger string, version mcp.Version, caller downstream.Caller, req *downstream.Request) []*Reply {
	if t == nil || !MayAsk(req.Method) {
		return nil
	}
	t.mu.Lock()
	found := slices.Clone(t.calls[stranger])
	t.mu.Unlock()
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
		return !p.repeats(req, hash) || !p.flow.By(caller)
	})
	if len(found) > 1 {
		slices.SortStableFunc(found, func(p, other *Reply) int { return cmp.Compare(other.answers(), p.answers()) })
	}
	return found
}

// remember keeps a call for the same one to find. It is idempotent. It returns the one
// that must make room: a principal without a session has as many as a session.
func (t *Replies) remember(p *Reply) (evicted *Reply) {
	if t == nil {
		return nil
	}
	return ofWhoHasMost(t.add(p))
}

// add keeps a call. It returns all that its principal has if they are too many now, oldest first.
func (t *Replies) add(p *Reply) (tooMany []*Reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whose := p.of.Stranger
	if slices.Contains(t.calls[whose], p) {
		return nil
	}
	if t.calls == nil {
		t.calls = map[string][]*Reply{}
	}
	t.calls[whose] = append(t.calls[whose], p)
	if all := t.calls[whose]; whose != "" && len(all) > t.most {
		return slices.Clone(all)
	}
	return nil
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

// Len returns how many wait.
func (t *Replies) Len() (n int) {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, calls := range t.calls {
		n += len(calls)
	}
	return n
}

// forget is idempotent.
func (t *Replies) forget(p *Reply) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	whose := p.of.Stranger
	rest := slices.DeleteFunc(t.calls[whose], func(other *Reply) bool { return other == p })
	if len(rest) > 0 {
		t.calls[whose] = rest
	} else {
		delete(t.calls, whose)
	}
}

// Close ends all that wait.
func (t *Replies) Close(cause error) {
	t.mu.Lock()
	all := slices.Concat(slices.Collect(maps.Values(t.calls))...)
	t.mu.Unlock()
	for _, p := range all {
		p.flow.Drive(mrtr.Failed(cause))
	}
}

// MayAsk reports whether a server may ask something before it answers (D-I1).
func MayAsk(method string) bool {
	return method == mcp.MethodToolsCall || method == mcp.MethodPromptsGet || method == mcp.MethodResourcesRead
}
