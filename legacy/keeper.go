package legacy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keeper keeps the sessions of Streamable HTTP in a store, from which they come back
// when a client names one that this process doesn't know. Calls don't touch the store.
type keeper struct {
	http   *HTTP
	store  store.Store
	scope  string
	seat   downstream.Seat
	shared bool // other replicas may change what is kept

	opened    atomic.Uint32      // how many sessions were opened or brought back
	restoring singleflight.Group // one restoration of a session at a time
	ends      chan string        // sessions that expired
	changes   chan *session      // that have something going on, and were changed elsewhere
	ctx       context.Context    // ends with the goroutine
	stop      context.CancelFunc // ends the goroutine, which Close awaits
	running   sync.WaitGroup

	mu    sync.Mutex
	names map[string]*session // the live ones, by their names in the store, where that is shared
}

// sessionRecord is what a session is, for another process to go on with.
type sessionRecord struct {
	V             int         `json:"v"`
	ID            string      `json:"id"`
	Version       mcp.Version `json:"version"`
	Principal     string      `json:"principal,omitempty"`
	Authorization string      `json:"authorization,omitempty"`
	Began         time.Time   `json:"began"`
	Conversation  []byte      `json:"conversation"`
}

// sessionRecordVersion counts the changes of sessionRecord that an older bridge could
// not go on from. Members may be added without one.
const sessionRecordVersion = 1

const (
	storeTimeout = 5 * time.Second // for one operation
	tryAgain     = 200 * time.Millisecond
	touchBatch   = 1000 // sessions touched in one round trip
	endsWaiting  = 1024 // sessions whose records are about to be removed; the others' expire

	changesWaiting = 4096 // sessions that are about to be looked at; the others' next request does
)

func newKeeper(h *HTTP) *keeper {
	k := &keeper{
		http: h, store: h.opt.Store, scope: h.opt.StoreScope, seat: h.opt.Seat,
		ends: make(chan string, endsWaiting), changes: make(chan *session, changesWaiting), names: map[string]*session{},
	}
	k.shared = k.store.Watch(k.changed)
	ctx, stop := context.WithCancel(context.Background())
	k.ctx, k.stop = ctx, stop
	k.running.Go(func() { k.run(ctx) })
	return k
}

func (k *keeper) close() {
	k.stop()
	k.running.Wait()
}

// name returns the name of a session in the store. Endpoints share it, and a session of
// one is none of another.
func (k *keeper) name(id string) string { return store.Name(k.scope + "\n" + id) }

// touchEvery is how often the sessions in use are said to be.
func (k *keeper) touchEvery() time.Duration { return k.http.opt.IdleTimeout / 4 }

// ttl is how long a record outlives its last touch.
func (k *keeper) ttl() time.Duration { return k.http.opt.IdleTimeout + 2*k.touchEvery() }

// run touches what is in use and removes what has expired.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(k.touchEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-k.ends:
			k.report("removing an expired session", k.do(func(ctx context.Context) error { return k.store.End(ctx, name) }))
		case s := <-k.changes:
			k.refresh(s)
		case <-tick.C:
			k.touch()
		}
	}
}

// touch lets the records of the sessions in use live longer.
func (k *keeper) touch() {
	var touches []store.Touch
	flush := func() {
		k.report("touching sessions", k.do(func(ctx context.Context) error { return k.store.Touch(ctx, touches...) }))
		touches = touches[:0]
	}
	since := time.Now().Add(-k.touchEvery() - k.touchEvery()/2)
	for _, use := range k.http.table.All() {
		if use.At.Before(since) && !use.Value.busy() {
			continue
		}
		touches = append(touches, store.Touch{Session: k.name(use.Value.rec.ID), TTL: k.ttl()})
		if len(touches) == touchBatch {
			flush()
		}
	}
	if len(touches) > 0 {
		flush()
	}
}

// do runs one operation with the time that it may take.
func (k *keeper) do(operation func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	return operation(ctx)
}

// pause passes the time between two tries of one operation.
func (k *keeper) pause() {
	select {
	case <-time.After(tryAgain):
	case <-k.ctx.Done():
	}
}

func (k *keeper) report(what string, err error) {
	if err != nil {
		k.http.opt.Logger.Warn().Err(err).Msg("the store of sessions fails: " + what)
	}
}

// ended takes note of the end of a session. At a shutdown, and when it had to make room
// for others, it can come back.
func (k *keeper) ended(s *session, cause sessions.Cause) {
	s.kept.mu.Lock()
	over := s.kept.gone || s.kept.version == 0
	s.kept.gone = true
	s.kept.mu.Unlock()
	name := k.name(s.rec.ID)
	k.forget(name, s)
	switch {
	case over:
	case cause == sessions.Expired && k.shared: // perhaps only here
	case cause == sessions.Removed:
		k.report("removing a session", k.do(func(ctx context.Context) error { return k.store.End(ctx, name) }))
	case cause == sessions.Expired:
		select {
		case k.ends <- name:
		default: // it expires there, too
		}
	}
}
