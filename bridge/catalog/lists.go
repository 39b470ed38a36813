package catalog

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// lists remembers what was found out about the results of list requests. They are
// long, rarely change, and are the same for most clients, while going over one of
// 20 tools takes longer than a whole small call. A result that came before, byte
// for byte, is not gone over again; whether it may be shown without asking the
// server is the cache's business, not decided here.
type lists struct {
	seed maphash.Seed

	mu    sync.RWMutex
	known map[listKey]*list
	bytes int         // of their sources
	grown int         // by which what clients see of them is longer than that
	held  budget.Hold // of what follows from those bytes, too
}

type listKey struct {
	method string
	hash   uint64
}

// list is one result and what follows from it. Its source never changes.
type list struct {
	key    listKey
	grown  int    // guarded by the lock of lists
	source []byte // of one that is not remembered the caller's
	ttl    time.Duration
	public bool
	shown  renderings
	lost   losses
}

// losses are what clients of each legacy version do not get of a list as it is, by the
// words of package translate, each once.
type losses [len(mcp.Legacy)]atomic.Pointer[[]string]

// Bounds of lists. What is forgotten is found out again.
const (
	maxListBytes = 4 << 20 // of sources; what clients see of them may be four times that
	maxListSize  = 1 << 20 // of one source
)

func newLists(held budget.Hold) *lists {
	return &lists{seed: maphash.MakeSeed(), known: make(map[listKey]*list), held: held}
}

// about returns what is known about a list result, or finds it out.
func (l *lists) about(method string, result []byte) *list {
	key := listKey{method, maphash.Bytes(l.seed, result)}
	l.mu.RLock()
	known := l.known[key]
	l.mu.RUnlock()
	if known != nil && bytes.Equal(known.source, result) {
		return known
	}
	ttl, public := lifetime(result)
	known = &list{key: key, source: result, ttl: ttl, public: public}
	if !known.long() {
		known.source = bytes.Clone(result)
		l.remember(known)
	}
	return known
}

// long reports whether the list is not remembered, since it takes too much.
func (l *list) long() bool { return len(l.source) > maxListSize }

func (l *lists) remember(known *list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.known[known.key]; old != nil { // somebody was quicker, or another text has the hash
		l.bytes -= len(old.source)
		l.grown -= old.grown
	}
	if l.bytes += len(known.source); l.bytes > maxListBytes {
		clear(l.known)
		l.bytes, l.grown = len(known.source), 0
	}
	if l.chargeLocked() != nil {
		clear(l.known)
		l.bytes, l.grown = 0, 0
		l.held.Release()
		return
	}
	l.known[known.key] = known
}

func (l *lists) chargeLocked() error {
	return l.held.Set(l.bytes*(1+len(mcp.Legacy)) + l.grown)
}

// lengthen charges for what clients see of a list by as much as that is longer, unless it is refused.
func (l *lists) lengthen(known *list, shown []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	more := len(shown) - len(known.source)
	if more <= 0 || l.known[known.key] != known {
		return nil
	}
	l.grown += more
	err := l.chargeLocked()
	if err != nil {
		l.grown -= more
		return err
	}
	known.grown += more
	return nil
}

// Lists returns the results of a list method that are known, as the server gave them:
// pages of one list, and lists of several people. Nobody may change them.
func (c *Catalog) Lists(method string) (known [][]byte) {
	c.lists.mu.RLock()
	defer c.lists.mu.RUnlock()
	for key, l := range c.lists.known {
		if key.method == method {
			known = append(known, l.source)
		}
	}
	return known
}

// AppendList appends a list result as clients with these rules see it, and learns
// the facts about its tools for an audience (hop.Audience).
func (c *Catalog) AppendList(dst []byte, rules *translate.Rules, audience string, req *downstream.Request, result []byte) ([]byte, error) {
	known := c.lists.about(req.Method, result)
	if req.Method == mcp.MethodToolsList {
		c.tools.learn(audience, rawjson.Get(req.Params, "cursor"), known, rules.Held)
	}
	var err error
	if known.long() {
		dst, err = known.render(dst, rules, req.Method)
	} else {
		var shown []byte
		shown, err = known.shown.of(rules.Version, func() ([]byte, error) { return known.render(nil, rules, req.Method) },
			func(shown []byte) error { return c.lists.lengthen(known, shown) })
		if err == nil {
			err = rules.Grew(len(shown) - len(result))
		}
		if err == nil {
			dst = append(dst, shown...)
		}
	}
	if rules.LostTo != nil {
		known.tell(rules)
	}
	return dst, err
}

// render appends a list as all clients of a version see it, and notes what they do not get.
func (l *list) render(dst []byte, rules *translate.Rules, method string) ([]byte, error) {
	all, lost := *rules, []string(nil)
	all.LostTo = func(what string) {
		if !slices.Contains(lost, what) {
			lost = append(lost, what)
		}
	}
	dst, err := all.AppendResult(dst, method, l.source)
	if place := slices.Index(mcp.Legacy[:], rules.Version); place >= 0 {
		l.lost[place].Store(&lost)
	}
	return dst, err
}

// tell tells one client's rules what it does not get of a list.
func (l *list) tell(rules *translate.Rules) {
	place := slices.Index(mcp.Legacy[:], rules.Version)
	if place < 0 {
		return
	}
	if lost := l.lost[place].Load(); lost != nil {
		for _, what := range *lost {
			rules.LostTo(what)
		}
	}
}

// renderings are what clients of each legacy version see of one thing.
type renderings [len(mcp.Legacy)]atomic.Pointer[[]byte] // by place in mcp.Legacy; nil: not yet asked for

// of returns the rendering for a version, which render makes when it is needed
// first, and which is kept if charge, nil for none, charges for it. Nobody may change it.
func (r *renderings) of(version mcp.Version, render func() ([]byte, error), charge func(shown []byte) error) ([]byte, error) {
	place := slices.Index(mcp.Legacy[:], version)
	if place < 0 {
		return render()
	}
	if shown := r[place].Load(); shown != nil {
		return *shown, nil
	}
	shown, err := render()
	if err == nil && r[place].CompareAndSwap(nil, &shown) && charge != nil && charge(shown) != nil {
		r[place].Store(nil)
	}
	return shown, err
}
