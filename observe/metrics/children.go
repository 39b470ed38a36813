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
	known   atomic.Pointer[map[K]C]
	mu      sync.Mutex // held to add one
}

func newChildren[K comparable, C any](resolve func(K) C) *children[K, C] {
	c := &children[K, C]{resolve: resolve}
	c.known.Store(&map[K]C{})
	return c
}

func (c *children[K, C]) of(key K) C {
	if child, ok := (*c.known.Load())[key]; ok {
		return child
	}
	return c.add(key)
}

func (c *children[K, C]) add(key K) C {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if child, ok := known[key]; ok {
		return child
	}
	more := maps.Clone(known)
	more[key] = c.resolve(key)
	c.known.Store(&more)
	return more[key]
}
