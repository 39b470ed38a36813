package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// engine is a store that can be broken, and counts what it is asked.
type engine struct {
	store.Store
	mu    sync.Mutex
	fault error // of every operation
	ping  error // of Ping alone, as of an engine that is read-only
	pings bool  // whatever the fault of all others
	asked int
}

func (e *engine) set(fault, ping error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault, e.ping = fault, ping
}

func (e *engine) ask() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return e.fault
}

func (e *engine) Load(ctx context.Context, session string) ([]store.Record, error) {
	if err := e.ask(); err != nil {
		return nil, err
	}
	return e.Store.Load(ctx, session)
}

func (e *engine) Ping(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pings {
		return e.ping
	}
	return errors.Join(e.fault, e.ping)
}

// watched returns an engine, who watches over it, and what that has said: "down", "up", and
// "" for sessions that may have changed.
func watched(t *testing.T) (*engine, *store.Monitored, func() []string) {
	t.Helper()
	e := &engine{Store: store.NewMemory(10)}
	var mu sync.Mutex
	var said []string
	note := func(word string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, word)
	}
	m := store.NewMonitored(e, func(up bool, why error) {
		if up == (why == nil) && up {
			note("up")
		} else {
			note("down")
		}
	})
	m.Watch(note)
	t.Cleanup(func() { _ = m.Close() })
	return e, m, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(said)
	}
}

var errLost = errors.New("connection refused")

// TestAnEngineThatFailsIsLeftAloneUntilItIsBack: nobody waits for it, and who has copies is
// told that they may be out of date.
func TestAnEngineThatFailsIsLeftAloneUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, m, said := watched(t)
		e.set(errLost, nil)
		if _, err := m.Load(t.Context(), "s"); !errors.Is(err, errLost) || m.Up() {
			t.Fatalf("%v, up %v", err, m.Up())
		}
		for range 10 {
			if _, err := m.Load(t.Context(), "s"); !errors.Is(err, store.ErrUnreachable) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute) // of the bubble
		if e.asked != 1 || m.Up() || !slices.Equal(said(), []string{"down"}) {
			t.Errorf("it was asked %d times, up %v, said %q", e.asked, m.Up(), said())
		}
		e.set(nil, nil)
		time.Sleep(time.Second)
		if _, err := m.Load(t.Context(), "s"); err != nil || !m.Up() || !slices.Equal(said(), []string{"down", "up", ""}) {
			t.Errorf("%v, up %v, said %q", err, m.Up(), said())
		}
		e.set(errLost, nil) // and once more
		_, _ = m.Load(t.Context(), "s")
		if m.Up() {
			t.Error("it is not noticed twice")
		}
		_ = m.Close()
	})
}

// TestWhatIsLargeAndSlowIsNoOutage: a client's large value alone has nobody else refused, unless the engine is away, too.
func TestWhatIsLargeAndSlowIsNoOutage(t *testing.T) {
	slowIsNoOutage(t, store.Slow(context.DeadlineExceeded))
}

// TestWhatWaitsBehindOthersIsNoOutage: what is small, too, may wait behind much of that for as long as it has time.
func TestWhatWaitsBehindOthersIsNoOutage(t *testing.T) {
	slowIsNoOutage(t, context.DeadlineExceeded)
}

func slowIsNoOutage(t *testing.T, slow error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, m, said := watched(t)
		e.fault = fmt.Errorf("reading: %w", slow)
		e.ping = nil
		e.pings = true
		if _, err := m.Load(t.Context(), "s"); !errors.Is(err, slow) || !errors.Is(err, context.DeadlineExceeded) || !m.Up() {
			t.Errorf("it answers pings: %v, up %v", err, m.Up())
		}
		e.set(e.fault, errLost)
		if _, err := m.Load(t.Context(), "s"); !errors.Is(err, slow) || m.Up() || !slices.Equal(said(), []string{"down"}) {
			t.Errorf("it does not: %v, up %v, said %q", err, m.Up(), said())
		}
		_ = m.Close()
	})
}

// TestAnEngineThatCannotBeWrittenToIsNotBack: reading it would do, and keep nothing.
func TestAnEngineThatCannotBeWrittenToIsNotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, m, _ := watched(t)
		e.set(errLost, nil)
		_, _ = m.Load(t.Context(), "s")
		e.set(nil, errors.New("READONLY"))
		time.Sleep(time.Minute)
		if m.Up() {
			t.Error("it counts as back")
		}
		_ = m.Close()
	})
}

// TestAnswersOfAnEngineAreNoFailures: nor is that somebody did not wait.
func TestAnswersOfAnEngineAreNoFailures(t *testing.T) {
	for _, fault := range []error{store.ErrNotFound, store.ErrClosed, context.Canceled, &store.ConflictError{}} {
		e, m, said := watched(t)
		e.set(fault, nil)
		if _, err := m.Load(t.Context(), "s"); !errors.Is(err, fault) || !m.Up() || len(said()) > 0 {
			t.Errorf("%v: %v, up %v", fault, err, m.Up())
		}
	}
}
