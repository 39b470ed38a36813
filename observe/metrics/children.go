package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// children resolves the children of one metric, once for each set of label values.
// Looking one up takes no lock and no memory. K has few values, since every label has.
type children[K comparable, C any] struct {
	resolve func(K) C
	// last is the one that was looked up last: calls come in runs of one kind, and to
	// compare keys of constants takes a fifth of the time that it takes to hash one.
	last  atomic.Pointer[child[K, C]]
	known atomic.Pointer[map[K]*child[K, C]]
	mu    sync.Mutex // held to add one
}

type child[K comparable, C any] struct {
	key   K
	value C
}

func newChildren[K comparable, C any](resolve func(K) C) *children[K, C] {
	c := &children[K, C]{resolve: resolve}
	c.known.Store(&map[K]*child[K, C]{})
	return c
}

func (c *children[K, C]) of(key K) C {
	if last := c.last.Load(); last != nil && last.key == key {
		return last.value
	}
	found := (*c.known.Load())[key]
	if found == nil {
		found = c.add(key)
	}
	c.last.Store(found)
	return found.value
}

func (c *children[K, C]) add(key K) *child[K, C] {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if there := known[key]; there != nil {
		return there
	}
	more := maps.Clone(known)
	more[key] = &child[K, C]{key, c.resolve(key)}
	c.known.Store(&more)
	return more[key]
}
