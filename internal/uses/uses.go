// Package uses keeps what several parts of a process share for as long as one of them uses it: parts that
// take each other's place at a reload find what is there, and nothing outlasts the last of them.
package uses

import "sync"

// Of has one value for each key that is in use. The zero Of is ready; its methods are safe for concurrent use.
type Of[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]*used[V]
}

type used[V any] struct {
	value V
	users int
}

// Use returns the value of a key, which begin makes for its first user. done is to be called once that user is
// done; after the last one the value is forgotten, and then given to end, outside of any lock. begin must not come back here.
func (o *Of[K, V]) Use(key K, begin func() V, end func(V)) (value V, done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.known[key]
	if u == nil {
		u = &used[V]{value: begin()}
		if o.known == nil {
			o.known = map[K]*used[V]{}
		}
		o.known[key] = u
	}
	u.users++
	return u.value, sync.OnceFunc(func() {
		if o.leave(key, u) {
			end(u.value)
		}
	})
}

// Len returns how many values there are.
func (o *Of[K, V]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.known)
}

// leave reports whether it was the last user.
func (o *Of[K, V]) leave(key K, u *used[V]) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if u.users--; u.users > 0 {
		return false
	}
	delete(o.known, key)
	return true
}
