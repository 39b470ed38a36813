// Package order has mutexes that know their row of the lock order, and end the process when
// they are taken out of it. The program has none of them: test/locks puts them in the place
// of sync's while it runs the tests.
package order

import (
	"reflect"
	"strings"
	"sync"
)

// Mutex is a sync.Mutex that is called like T, "call.Call" for the type lock_call_Call.
type Mutex[T any] struct {
	mu    sync.Mutex
	owner *holder // guarded by mu
}

// Lock takes it, in order.
func (m *Mutex[T]) Lock() {
	h := current()
	h.judge(name[T]())
	m.mu.Lock()
	h.push(m, name[T]())
	m.owner = h
}

// TryLock takes it if it is free. It waits for nobody, so it may do so in any order.
func (m *Mutex[T]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.owner = current()
	m.owner.push(m, name[T]())
	return true
}

// Unlock gives it back; any goroutine may.
func (m *Mutex[T]) Unlock() {
	m.owner.drop(m)
	m.owner = nil
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex, as Mutex is a sync.Mutex.
type RWMutex[T any] struct {
	mu    sync.RWMutex
	owner *holder // guarded by mu: who writes
}

// Lock takes it for writing, in order.
func (m *RWMutex[T]) Lock() {
	h := current()
	h.judge(name[T]())
	m.mu.Lock()
	h.push(m, name[T]())
	m.owner = h
}

// Unlock gives it back; any goroutine may.
func (m *RWMutex[T]) Unlock() {
	m.owner.drop(m)
	m.owner = nil
	m.mu.Unlock()
}

// RLock takes it for reading, in order: readers wait for a writer who waits.
func (m *RWMutex[T]) RLock() {
	h := current()
	h.judge(name[T]())
	m.mu.RLock()
	h.push(m, name[T]())
}

// RUnlock gives it back; the goroutine that took it does.
func (m *RWMutex[T]) RUnlock() {
	current().drop(m)
	m.mu.RUnlock()
}

// name is what the order calls the lock that T stands for.
func name[T any]() string {
	return strings.ReplaceAll(strings.TrimPrefix(reflect.TypeFor[T]().Name(), Prefix), "_", ".")
}

// Prefix begins the names of the types that locks are called after.
const Prefix = "lock_"
