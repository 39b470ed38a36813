package replica

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// A lease is a record that its replica renews. Its time is the engine's, so that clocks
// need not agree: who is not in the store any more is dead to all others, and what it
// kept is anybody's. That it may only have slept is no harm: versions fence.

const (
	leaseTTL     = 3 * time.Second
	leaseRenewal = leaseTTL / 3
	leaseTimeout = 2 * time.Second // for one operation
)

// leaseRecord is what a replica says of itself.
type leaseRecord struct {
	V       int    `json:"v"`
	Address string `json:"address"`
}

const leaseVersion = 1

// member is another replica that holds its lease.
type member struct {
	id      downstream.ReplicaID
	address string
	alive   context.Context // ends with the lease
	lapse   context.CancelFunc
	since   atomic.Int64 // when requests began not to get there, in Unix nanoseconds; 0: they do; negative: the log knows
}

// live renews the lease until Close.
func (r *Replica) live() {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		lapsed, err := r.beat(r.ctx)
		if err != nil && !failing && r.ctx.Err() == nil {
			r.opt.Log.Warn().Err(err).Msg("the store cannot be reached: other replicas will take this one for dead")
		}
		failing = err != nil
		if lapsed { // this process, or the store, has slept
			r.opt.Log.Warn().Msg("the lease had lapsed: looking which calls others have taken over")
			select {
			case r.doubt <- struct{}{}:
			default: // somebody is about to look
			}
		}
	}
}

// lookAfter has this replica look what others have taken over, each time that its lease had lapsed. That may
// take longer than a lease lasts, which is renewed meanwhile. Somebody who found it dead may be about
// to take a call over still, so it looks twice.
func (r *Replica) lookAfter(lapsed func()) {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.doubt:
		}
		lapsed()
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(leaseTTL):
		}
		lapsed()
	}
}

// beat renews the lease and looks who the others are. lapsed: there was none any more. Only the store can tell:
// a lease ends by its clock, and this process may have slept with its own.
func (r *Replica) beat(ctx context.Context) (lapsed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	if err := r.renew(ctx); err != nil {
		return false, err
	}
	lapsed, r.lapsed = r.lapsed, false
	version, err := r.read(ctx)
	if err == nil && version > 0 {
		r.version = version
	}
	return lapsed, err
}

func (r *Replica) renew(ctx context.Context) error {
	value, err := json.Marshal(&leaseRecord{V: leaseVersion, Address: r.opt.Address})
	if err != nil {
		return err
	}
	change := store.Change{Kind: store.Lease, ID: r.opt.Replica.String(), Replaces: r.version, TTL: leaseTTL, Value: value}
	err = r.opt.Store.Commit(ctx, store.Replicas, change)
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		r.lapsed = true // or it was renewed, and the store could not say so: then the look is for nothing
		r.mu.Lock()
		r.forgiveLocked()
		r.mu.Unlock()
		change.Replaces = store.Any
		return r.opt.Store.Commit(ctx, store.Replicas, change)
	}
	if err == nil {
		r.version++
	}
	return err
}

// resign gives the lease back, so that others need not wait for its end.
func (r *Replica) resign() {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTimeout)
	defer cancel()
	change := store.Change{Kind: store.Lease, ID: r.opt.Replica.String(), Replaces: store.Any, Delete: true}
	if err := r.opt.Store.Commit(ctx, store.Replicas, change); err != nil {
		r.opt.Log.Debug().Err(err).Msg("the lease was not given back")
	}
}

// look learns who has a lease.
func (r *Replica) look(ctx context.Context) error {
	_, err := r.read(ctx)
	return err
}

// read reads all leases, and returns the version of this replica's own, 0 when there is none.
func (r *Replica) read(ctx context.Context) (own uint64, err error) {
	list, err := r.opt.Store.Load(ctx, store.Replicas)
	if err != nil {
		return 0, err
	}
	found := map[downstream.ReplicaID]string{}
	for i := range list {
		switch id, address, ok := readLease(&list[i]); {
		case !ok:
		case id == r.opt.Replica:
			own = list[i].Version
		default:
			found[id] = address
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if own == 0 {
		r.forgiveLocked()
	}
	for id, m := range r.others {
		if address, ok := found[id]; address != m.address && (ok || time.Now().After(r.grace)) {
			m.lapse()
			delete(r.others, id)
			r.opt.Log.Info().Stringer("replica", id).Msg("a replica is gone")
		}
	}
	for id, address := range found {
		if r.others[id] == nil {
			m := &member{id: id, address: address}
			m.alive, m.lapse = context.WithCancel(r.ctx)
			r.others[id] = m
			r.opt.Log.Info().Stringer("replica", id).Str("address", address).Msg("a replica is there")
		}
	}
	return own, nil
}

// forgiveLocked has those who are known, and have no lease, live on for the time of one: where this replica's own has
// lapsed the store has slept, perhaps, and with it all leases have. Taken for dead the moment that it is back, one
// that lives could not say what it has, and has not, done.
func (r *Replica) forgiveLocked() { r.grace = time.Now().Add(leaseTTL) }

func readLease(r *store.Record) (downstream.ReplicaID, string, bool) {
	var lease leaseRecord
	if r.Kind != store.Lease || r.Err != nil || json.Unmarshal(r.Value, &lease) != nil || lease.Address == "" {
		return 0, "", false
	}
	id, ok := downstream.ParseReplicaID(r.ID)
	return id, lease.Address, ok
}

// members returns the replicas that are alive, without this one.
func (r *Replica) members() []*member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.others))
}

// Others returns the replicas that are alive, without this one.
func (r *Replica) Others() []downstream.ReplicaID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.others))
}

// Alone reports whether there is no other replica, after a look at the store if need be.
func (r *Replica) Alone(ctx context.Context) bool {
	if len(r.Others()) > 0 {
		return false
	}
	r.lookOnce(ctx) // one may have come just now
	return len(r.Others()) == 0
}

// reached notes that requests get to a replica.
func (r *Replica) reached(m *member) {
	if m.since.Load() != 0 && m.since.Swap(0) < 0 {
		r.opt.Log.Info().Stringer("replica", m.id).Msg("a replica can be reached again")
	}
}

// cutOff reports whether requests have not got there for so long that the log was told.
func (m *member) cutOff() bool { return m.since.Load() < 0 }

// missed notes that a request did not get to one. The log is told once of each that is cut off.
func (r *Replica) missed(m *member, err error) {
	now := time.Now().UnixNano()
	if m.since.CompareAndSwap(0, now) {
		return
	}
	if since := m.since.Load(); since > 0 && now-since > int64(leaseTTL) && m.alive.Err() == nil && m.since.CompareAndSwap(since, -1) {
		r.opt.Log.Warn().Err(err).Stringer("replica", m.id).Str("address", m.address).
			Msg("a replica has its lease, and requests do not get there: see its replica.address, and the network between replicas")
	}
}

// Knows reports whether another replica is alive.
func (r *Replica) Knows(ctx context.Context, id downstream.ReplicaID) bool {
	return r.member(ctx, id) != nil
}

// member returns a replica that is alive, nil when it is not.
func (r *Replica) member(ctx context.Context, id downstream.ReplicaID) *member {
	if id == 0 || id == r.opt.Replica {
		return nil
	}
	if m := r.known(id); m != nil {
		return m
	}
	r.lookOnce(ctx) // it may be a new one
	return r.known(id)
}

func (r *Replica) known(id downstream.ReplicaID) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.others[id]
}

// lookOnce looks, or waits for a look that is under way.
func (r *Replica) lookOnce(ctx context.Context) {
	r.mu.Lock()
	looking := r.looking
	if looking == nil {
		r.looking = make(chan struct{})
	}
	r.mu.Unlock()
	if looking != nil {
		<-looking
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	if err := r.look(ctx); err != nil {
		r.opt.Log.Debug().Err(err).Msg("the other replicas are not known")
	}
	r.mu.Lock()
	close(r.looking)
	r.looking = nil
	r.mu.Unlock()
}
