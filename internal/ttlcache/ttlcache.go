// Package ttlcache keeps what a server said for as long as the server allows, and
// shows it only to those for whom the server meant it. It owns partition by
// principal, expiry, bounds and invalidation; what is kept is its user's business.
package ttlcache

import (
	"sync"
	"time"
)

// Limits bounds a Cache. Zero means no bound.
type Limits struct {
	Entries int
	Bytes   int // sum of the sizes that are told to Put; one entry may have a sixteenth
	// Held is told of that sum, and may refuse more: then an entry is not kept. nil: nobody is.
	// It is used under the cache's lock.
	Held interface{ Set(bytes int) error }
}

// Cache is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limits Limits

	mu      sync.Mutex
	entries map[place[K]]entry[V]
	bytes   int
	epoch   Epoch
}

// Epoch counts invalidations: what was asked for before one is not kept after it.
type Epoch uint64

// place is where an entry is found: for one principal, or for everyone.
type place[K comparable] struct {
	everyone  bool
	principal string
	key       K
}

type entry[V any] struct {
	value   V
	size    int
	put     time.Time
	expires time.Time
}

// Item is what Put keeps.
type Item[V any] struct {
	Value  V
	Size   int           // in bytes; what the key holds counts too
	TTL    time.Duration // nothing is kept for 0 or less
	Public bool          // the server means it for everyone
}

// New returns an empty cache.
func New[K comparable, V any](limits Limits) *Cache[K, V] {
	return &Cache[K, V]{limits: limits, entries: make(map[place[K]]entry[V])}
}

// Get returns what principal may be shown under key, and the epoch to Put a newer
// answer with. principal "" means without credentials.
func (c *Cache[K, V]) Get(principal string, key K) (value V, epoch Epoch, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, at := range [...]place[K]{{principal: principal, key: key}, {everyone: true, key: key}} {
		if e, ok := c.entries[at]; ok && now.Before(e.expires) {
			return e.value, c.epoch, true
		}
	}
	return value, c.epoch, false
}

// Put keeps an item that principal got, unless something was dropped since epoch.
// Everyone is shown what the server calls public and gave to a caller without
// credentials. A public item that took credentials to get is not shown to those
// who have none (B-45).
func (c *Cache[K, V]) Put(principal string, key K, epoch Epoch, item Item[V]) {
	if item.TTL <= 0 || c.limits.Bytes > 0 && item.Size > c.limits.Bytes/16 {
		return
	}
	at := place[K]{principal: principal, key: key}
	if item.Public && principal == "" {
		at.everyone = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return
	}
	c.removeLocked(at)
	if principal == "" { // the newest counts, wherever the last one is
		c.removeLocked(place[K]{everyone: !at.everyone, key: key})
	}
	c.makeRoomLocked(item.Size)
	if c.tellLocked(item.Size) != nil {
		_ = c.tellLocked(0) // less is never refused
		return
	}
	now := time.Now()
	c.entries[at] = entry[V]{item.Value, item.Size, now, now.Add(item.TTL)}
	c.bytes += item.Size
}

// Each tells of every entry that may still be shown: its size, when it was put there, and
// until when it may.
func (c *Cache[K, V]) Each(tell func(key K, size int, put, expires time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for at, e := range c.entries {
		if now.Before(e.expires) {
			tell(at.key, e.size, e.put, e.expires)
		}
	}
}

// Drop forgets everything under the keys that are stale.
func (c *Cache[K, V]) Drop(stale func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for at := range c.entries {
		if stale(at.key) {
			c.removeLocked(at)
		}
	}
	_ = c.tellLocked(0) // less is never refused
}

// tellLocked tells of what is kept, and so many bytes more.
func (c *Cache[K, V]) tellLocked(more int) error {
	if c.limits.Held == nil {
		return nil
	}
	return c.limits.Held.Set(c.bytes + more)
}

// makeRoomLocked drops what has expired, then whatever the map yields first: a
// cache this full has no order worth keeping.
func (c *Cache[K, V]) makeRoomLocked(size int) {
	now := time.Now()
	for _, onlyExpired := range [...]bool{true, false} {
		for at, e := range c.entries {
			if !c.fullLocked(size) {
				return
			}
			if !onlyExpired || !now.Before(e.expires) {
				c.removeLocked(at)
			}
		}
	}
}

// fullLocked reports whether one more entry of the size exceeds a bound.
func (c *Cache[K, V]) fullLocked(size int) bool {
	return c.limits.Entries > 0 && len(c.entries) >= c.limits.Entries ||
		c.limits.Bytes > 0 && c.bytes+size > c.limits.Bytes
}

func (c *Cache[K, V]) removeLocked(at place[K]) {
	if e, ok := c.entries[at]; ok {
		c.bytes -= e.size
		delete(c.entries, at)
	}
}
