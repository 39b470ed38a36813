package replica

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// living is a replica that nobody reaches, and that renews its lease until the test, in a bubble, is over.
func living(t *testing.T, shared store.Store, lapsed func()) (*Replica, context.CancelFunc) {
	t.Helper()
	r := &Replica{opt: Options{Store: shared, Replica: downstream.NewReplicaID(), Log: zerolog.Nop(), Address: "x"}, others: map[downstream.ReplicaID]*member{}, doubt: make(chan struct{}, 1)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	if _, err := r.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.running.Go(r.live)
	r.running.Go(func() { r.lookAfter(lapsed) })
	return r, func() {
		r.stop()
		r.running.Wait()
	}
}

// holds reports whether a replica has its lease.
func holds(t *testing.T, shared store.Store, r *Replica) bool {
	t.Helper()
	list, err := shared.Load(t.Context(), store.Replicas)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(k store.Record) bool { return k.ID == r.opt.Replica.String() })
}

// TestALeaseEndsByTheStoresClock: this process may have slept with its own clock, or between a renewal and the word of it.
// Somebody who found it dead may take a call over a moment after it has looked, so it looks again.
func TestALeaseEndsByTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(10)
		var looked atomic.Int32
		r, stop := living(t, shared, func() { looked.Add(1) })
		defer stop()
		time.Sleep(20 * leaseTTL)
		synctest.Wait() // a renewal that is under way would overwrite the lapse
		if looked.Load() != 0 || !holds(t, shared, r) {
			t.Errorf("it looked %d times for nothing", looked.Load())
		}
		lapse(t, shared, r)
		time.Sleep(leaseRenewal)
		synctest.Wait()
		if looked.Load() != 1 {
			t.Errorf("it looked %d times at once", looked.Load())
		}
		time.Sleep(20 * leaseTTL)
		if looked.Load() != 2 {
			t.Errorf("it looked %d times in all", looked.Load())
		}
	})
}

// away is a store that fails at times, after it has made a change or before.
type away struct {
	store.Store
	fails, makes atomic.Bool
}

func (a *away) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if a.fails.Load() && !a.makes.Load() {
		return errBroken
	}
	if err := a.Store.Commit(ctx, session, changes...); err != nil || !a.fails.Load() {
		return err
	}
	return errBroken
}

// TestALapseIsNotForgottenWhileTheStoreFails, whatever that has done.
func TestALapseIsNotForgottenWhileTheStoreFails(t *testing.T) {
	for _, makes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			shared := &away{Store: store.NewMemory(10)}
			var looked atomic.Int32
			r, stop := living(t, shared, func() { looked.Add(1) })
			defer stop()
			shared.makes.Store(makes)
			shared.fails.Store(true)
			lapse(t, shared.Store, r)
			time.Sleep(2 * leaseRenewal)
			shared.fails.Store(false)
			time.Sleep(2 * leaseRenewal)
			if looked.Load() != 1 {
				t.Errorf("changes were made %v: it looked %d times", makes, looked.Load())
			}
		})
	}
}

// TestALeaseIsRenewedWhileItsReplicaLooks at all its calls: it would lapse again, and never come to an end.
func TestALeaseIsRenewedWhileItsReplicaLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(10)
		r, stop := living(t, shared, func() { time.Sleep(10 * leaseTTL) })
		defer stop()
		lapse(t, shared, r)
		time.Sleep(5 * leaseTTL)
		if !holds(t, shared, r) {
			t.Error("it has no lease")
		}
	})
}

// TestAStoreThatSleptMakesNobodyDead: with it all leases have lapsed, and whoever lives is about to renew his. Who is not is
// dead a lease later, as is at once who alone has lost his.
func TestAStoreThatSleptMakesNobodyDead(t *testing.T) {
	for name, tc := range map[string]struct {
		slept, stays bool
	}{"one that lives": {true, true}, "one that is dead": {true, false}, "a store that was awake": {false, false}} {
		synctest.Test(t, func(t *testing.T) {
			shared := store.NewMemory(10)
			here, stop := living(t, shared, func() {})
			defer stop()
			there, end := living(t, shared, func() {})
			time.Sleep(2 * leaseRenewal)
			synctest.Wait() // a renewal that is under way would overwrite the lapse
			if !tc.stays {
				end()
			}
			lapse(t, shared, there)
			if tc.slept {
				lapse(t, shared, here)
			}
			if err := here.look(t.Context()); err != nil || (here.known(there.opt.Replica) != nil) != tc.slept {
				t.Errorf("%s: known %v, %v", name, !tc.slept, err)
			}
			time.Sleep(leaseTTL - time.Millisecond)
			if known := here.known(there.opt.Replica) != nil; known != tc.slept {
				t.Errorf("%s: known within the time of a lease: %v", name, known)
			}
			time.Sleep(leaseTTL)
			if known := here.known(there.opt.Replica) != nil; known != tc.stays {
				t.Errorf("%s: known in the end: %v", name, known)
			}
			if tc.stays {
				end()
			}
		})
	}
}
