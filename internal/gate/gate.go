// Package gate counts what is under way behind a door, and closes the door in order:
// first nobody new is let in, then whoever is inside may finish.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
)

// Gate is the door. Its methods are safe for concurrent use.
//
//	open ──Shut──▶ shut: Enter reports false ──last Exit──▶ empty: Wait returns
type Gate struct {
	count atomic.Int64
	once  sync.Once
	shut  chan struct{} // closed by Shut
	empty chan struct{} // has a value when the count fell to zero after Shut
}

// New returns an open gate.
func New() *Gate {
	return &Gate{shut: make(chan struct{}), empty: make(chan struct{}, 1)}
}

// Enter counts somebody in, unless the gate is shut. Each one who entered must Exit.
func (g *Gate) Enter() bool {
	g.count.Add(1)
	if g.IsShut() {
		g.Exit()
		return false
	}
	return true
}

// Join is Enter for work that goes on behind the gate, also when that is shut.
func (g *Gate) Join() { g.count.Add(1) }

// Admit is Enter, and for who comes about somebody who is inside it is Join.
func (g *Gate) Admit(follows bool) bool {
	if follows {
		g.Join()
		return true
	}
	return g.Enter()
}

// Go runs work behind the gate on a goroutine of its own, and reports false when the gate
// is shut: then nothing runs. Unlike a sync.WaitGroup it may be called while somebody waits.
func (g *Gate) Go(work func()) bool {
	if !g.Enter() {
		return false
	}
	go func() {
		defer g.Exit()
		work()
	}()
	return true
}

// Exit counts somebody out.
func (g *Gate) Exit() {
	if g.count.Add(-1) == 0 && g.IsShut() {
		g.tell()
	}
}

// Count returns how many are inside.
func (g *Gate) Count() int { return int(g.count.Load()) }

// Shut lets nobody in from now on. It reports whether it was this call that shut the
// gate.
func (g *Gate) Shut() (first bool) {
	g.once.Do(func() {
		close(g.shut)
		first = true
	})
	return first
}

// IsShut reports whether Shut was called.
func (g *Gate) IsShut() bool {
	select {
	case <-g.shut:
		return true
	default:
		return false
	}
}

// Shutting returns what is closed by Shut.
func (g *Gate) Shutting() <-chan struct{} { return g.shut }

// Wait returns when nobody is inside any more, or else ctx's error when that ends
// first. The gate must have been shut.
func (g *Gate) Wait(ctx context.Context) error {
	for g.count.Load() > 0 {
		select {
		case <-g.empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.tell() // others who wait
	return nil
}

func (g *Gate) tell() {
	select {
	case g.empty <- struct{}{}:
	default:
	}
}
