package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/sessions/store"
)

// TestOperationsShareTheirTime: what begins together shares a context, and each operation
// has its time, however long nothing was asked before.
func TestOperationsShareTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper{patience: t.Context()}
		first := k.begin(time.Now())
		time.Sleep(spellStep)
		if k.begin(time.Now()) != first {
			t.Error("operations of one second do not share a context")
		}
		time.Sleep(storeTimeout - time.Millisecond)
		if first.Err() != nil {
			t.Error("an operation that began last had less than its time")
		}
		time.Sleep(2 * time.Millisecond)
		if !errors.Is(first.Err(), context.DeadlineExceeded) {
			t.Errorf("got %v for an operation that took too long", first.Err())
		}
		if err := k.begin(time.Now()).Err(); err != nil {
			t.Errorf("the next operation begins with %v", err)
		}
	})
}

// TestLargeOperationsAreBoundedByTheirTurn: an engine that has them wait for each other knows whose they are, and no time of small ones
// runs meanwhile.
func TestLargeOperationsAreBoundedByTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		k.patience, k.lose = context.WithCancel(t.Context())
		account, err := budget.New(1 << 30).Open("somebody")
		if err != nil {
			t.Fatal(err)
		}
		s := &Session{account: account}
		if ctx := k.timeFor(s, store.Large-1); ctx != k.begin(time.Now()) {
			t.Error("a small operation has a context of its own")
		}
		ctx := k.timeFor(s, store.Large)
		owner, bounds := store.TurnOf(ctx)
		time.Sleep(storeTimeout + 2*spellStep)
		if owner != "somebody" || ctx.Err() == nil || bounds.Err() != nil {
			t.Errorf("it is of %q; its own time: %v, its turn's: %v", owner, ctx.Err(), bounds.Err())
		}
		if k.lose(); bounds.Err() == nil {
			t.Error("it outlasts the process")
		}
	})
}

// crowdedStore is one that has what is small wait for its turn.
type crowdedStore struct {
	store.Store
	crowded bool
}

func (s *crowdedStore) Crowded() bool { return s.crowded }

// While a store is crowded, what is small says whose it is, too; else that costs it nothing.
func TestSmallOperationsSayWhoseTheyAreInACrowd(t *testing.T) {
	engine := &crowdedStore{Store: store.NewMemory(1), crowded: true}
	sealed, err := store.NewSealed(store.NewMonitored(engine, func(bool, error) {}), []store.Key{{1}})
	if err != nil {
		t.Fatal(err)
	}
	k := keeper{store: sealed}
	k.patience, k.lose = context.WithCancel(t.Context())
	defer k.lose()
	account, err := budget.New(1 << 30).Open("somebody")
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{account: account}
	if owner, bounds := store.TurnOf(k.timeFor(s, 0)); owner != "somebody" || bounds != k.patience {
		t.Errorf("it is of %q", owner)
	}
	engine.crowded = false
	if ctx := k.timeFor(s, 0); ctx != k.begin(time.Now()) {
		t.Error("it has a context of its own")
	}
}

// TestAStoreThatHangsHoldsUpNoStop: the process has ten seconds after its drain (docs/operations.md).
func TestAStoreThatHangsHoldsUpNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		k.patience, k.lose = context.WithCancel(t.Context())
		k.ctx = k.patience
		time.AfterFunc(time.Second, k.hurry)
		began := time.Now()
		err := k.do(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if took := time.Since(began); took > time.Second+lastMoments || err == nil || k.pause() || k.do(func(ctx context.Context) error { return ctx.Err() }) == nil {
			t.Errorf("an operation that hangs ends after %v with %v", took, err)
		}
	})
}
