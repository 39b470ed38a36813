package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keeper keeps the sessions of Streamable HTTP in a store, from which they come back
// when a client names one that this process doesn't know. Calls don't touch the store.
type keeper struct {
	set       *Set
	store     store.Store
	scope     string
	replicaID downstream.ReplicaID
	shared    bool // other replicas may change what is kept

	opened    atomic.Uint32      // how many sessions were opened or brought back
	until     atomic.Int64       // when the last record expires of those that are left to the store, unless it is touched; UnixNano
	restoring singleflight.Group // one restoration of a session at a time
	ends      chan *Session      // that expired
	changes   chan *Session      // that have something going on, and were changed elsewhere
	uses      chan *Session      // that were used, and are to last
	patience  context.Context    // ends when nothing waits for the store any more, soon after Close began
	lose      context.CancelFunc // ends that
	ctx       context.Context    // ends with the goroutines
	stop      context.CancelFunc // ends the goroutines, which Close awaits
	running   sync.WaitGroup

	own *budget.Account // for what is read of the store for no session that is here

	crowded zerolog.Logger // for lines about who has no room in it
	late    lateCalls      // that have ended, and that it has still

	saving    atomic.Bool            // what is unsaved is tried again
	retry     chan struct{}          // has one in it when that is to begin
	lost      chan struct{}          // has one in it when the connection to the store was lost
	resealing atomic.Bool            // sessions are written anew
	astray    atomic.Bool            // calls were left to the store, and nobody has noted when they are due
	resting   map[*Session]time.Time // that left the table, and since when nobody is in them; of the goroutine that unloads
	spell     atomic.Pointer[spell]

	mu      sync.Mutex
	closed  bool                // nothing more begins
	names   map[string]*Session // the live ones, by their names in the store, where that is shared
	ending  map[string]*Session // of ends, those that have not come back, by their ids
	unsaved map[*Session]bool   // whose changes the store has not
}

// dues is the part of a keeper that does what is due to calls that no replica has in
// memory. It has no state of its own.
type dues struct{ *keeper }

const (
	storeTimeout = 5 * time.Second // for one operation; spellStep more for some
	lastMoments  = 4 * time.Second // for all operations, once the process is about to end
	tryAgain     = 200 * time.Millisecond
	touchBatch   = 1000 // sessions touched in one round trip
	resealAtOnce = 16   // sessions written anew at the same time
	endsWaiting  = 1024 // sessions whose records are about to be removed; the others' expire

	changesWaiting = 4096 // sessions that are about to be looked at; the others' next request does
)

// errStays says that a session was not removed, which whoever has waited for that is to look for.
var errStays = errors.New("the session stays")

func newKeeper(set *Set) *keeper {
	k := &keeper{
		set: set, store: set.opt.Store, scope: set.opt.StoreScope, replicaID: set.opt.Replica,
		ends: make(chan *Session, endsWaiting), changes: make(chan *Session, changesWaiting), uses: make(chan *Session, touchBatch), names: map[string]*Session{}, ending: map[string]*Session{}, unsaved: map[*Session]bool{}, retry: make(chan struct{}, 1), lost: make(chan struct{}, 1),
		resting: map[*Session]time.Time{}, own: set.opt.Memory.Own(),
		crowded: logfield.Seldom(set.opt.Logger),
	}
	k.shared = k.store.Watch(k.changed)
	k.keepUntil(k.ttl()) // what a process before this one has left
	k.patience, k.lose = context.WithCancel(context.Background())
	k.ctx, k.stop = context.WithCancel(k.patience)
	k.running.Go(func() { k.run(k.ctx) })
	k.running.Go(func() { toucher{k}.renewCalls(k.ctx) })
	if k.unloads() {
		k.running.Go(func() { unloader{k}.unload(k.ctx) })
	}
	if set.opt.Calls != nil {
		k.running.Go(func() { dues{k}.watchDue(k.ctx) })
	}
	return k
}

// hurry is said when all that is under way is about to end: a store that hangs has a while for the last words of
// all calls, and holds the process up no longer.
func (k *keeper) hurry() { time.AfterFunc(lastMoments, k.lose) }

func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.stop()
	k.running.Wait()
}

// name returns the name of a session in the store. Endpoints share it, and a session of
// one is none of another.
func (k *keeper) name(id string) string { return store.Name(k.scope + "\n" + id) }

// nameOf is the name of a session whose calls are kept, which is made once.
func (k *keeper) nameOf(s *Session) string {
	name := s.stored.name.Load()
	if name == nil {
		made := k.name(s.rec.ID)
		name = &made
		s.stored.name.Store(name)
	}
	return *name
}

// number begins those of the streams of a session that this replica gets to know; 0
// without a store.
func (k *keeper) number() stream.Number {
	if k == nil {
		return 0
	}
	return stream.First(k.replicaID, k.opened.Add(1))
}

// touchEvery is how often the sessions in use are said to be.
func (k *keeper) touchEvery() time.Duration { return k.set.opt.IdleTimeout / 4 }

// ttl is how long a record outlives its last touch, unless calls need it: see ttlOf.
func (k *keeper) ttl() time.Duration { return k.set.opt.IdleTimeout + 2*k.touchEvery() }

// run touches what is in use and removes what has expired.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(k.touchEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-k.ends:
			k.expire(s)
		case s := <-k.changes:
			k.refresh(s)
		case <-k.retry:
			if k.saving.CompareAndSwap(false, true) { // else it goes on
				k.running.Go(toucher{k}.saveLater)
			}
		case s := <-k.uses:
			toucher{k}.touchUsed(s)
		case <-tick.C:
			toucher{k}.touch()
		}
	}
}

// removeLater has a session that has expired here removed from the store in its turn: who finds that looks after all others, too, and does not wait
// for the store. Its client may come back before that, and it stays then, whatever becomes of it.
func (k *keeper) removeLater(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set.table.Has(s.rec.ID) { // it has come back as it ended
		return
	}
	select {
	case k.ends <- s:
		k.ending[s.rec.ID] = s
	default: // it expires there, too; what the server still does for its calls elsewhere ends by the server's own time
	}
}

// cameBack has a session stay that had expired.
func (k *keeper) cameBack(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ending, id)
}

// isEnding reports whether an expired session has not come back, and forgets it.
func (k *keeper) isEnding(s *Session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending[s.rec.ID] != s {
		return false
	}
	delete(k.ending, s.rec.ID)
	return true
}

// expire removes an expired session from the store, unless it has come back meanwhile: none does while that is done.
func (k *keeper) expire(s *Session) {
	id := s.rec.ID
	_, _, _ = k.restoring.Do(id, func() (any, error) {
		if !k.isEnding(s) || k.set.vacated.Load() { // it may be elsewhere by now
			return nil, errStays
		}
		left := k.elsewhere(s, k.own) // its own account is closed
		k.report("removing an expired session", k.do(func(ctx context.Context) error { return k.store.End(ctx, k.name(id)) }))
		tellAll(left)
		return nil, nil
	})
	k.isEnding(s) // where a client's way back was shared that failed: then the record expires by itself
}

// ttlOf is how long a session's record outlives now: its calls need it. Where one does longer than it would
// without them, the next calls find it long enough for a while.
func (k *keeper) ttlOf(s *Session) time.Duration {
	now := time.Now()
	ttl := k.ttl()
	if left := s.stored.span.longest().Sub(now); left > 0 {
		ttl = max(ttl, left+k.touchEvery())
	}
	_, longest := s.stored.shelf.look(now)
	return max(ttl, longest)
}

// touchAll lets the records of sessions live on, in one round trip.
func (k *keeper) touchAll(list []*Session) error {
	touches := make([]store.Touch, 0, len(list))
	now := time.Now()
	for _, s := range list {
		ttl := k.ttlOf(s)
		s.stored.kept.Renew(ttl)
		touches = append(touches, store.Touch{Session: k.name(s.rec.ID), TTL: ttl, WithCalls: k.shared})
	}
	if err := k.do(func(ctx context.Context) error { return k.store.Touch(ctx, touches...) }); err != nil {
		return err
	}
	for i, s := range list {
		k.lengthen(s, s.stored.span.written(now.Add(touches[i].TTL)))
	}
	return nil
}

// lengthen has a session's record last as long as its calls do, where it does not.
func (k *keeper) lengthen(s *Session, short bool) {
	if short {
		k.report("touching a session", k.touchAll([]*Session{s}))
	}
}

// lengthenFor does that at the same time as records of its calls are written, so that neither waits for the other, and
// returns what waits for it.
func (k *keeper) lengthenFor(s *Session, calls []store.Change) (wait func()) {
	if !s.stored.span.begin(calls, k.ttl()) {
		return func() {}
	}
	var running sync.WaitGroup
	running.Go(func() { k.lengthen(s, true) })
	return running.Wait
}

// leave has the sessions with such calls last as long as these once more: replicas that had them, too, may have seen to them
// last, which know nothing of calls here.
func (k *keeper) leave() {
	var left []*Session
	for _, use := range k.set.table.All() {
		if s := use.Value; s.stored != nil && !s.stored.span.longest().IsZero() {
			left = append(left, s)
		}
	}
	k.running.Go(func() {
		for part := range slices.Chunk(left, touchBatch) {
			k.report("touching sessions", k.touchAll(part))
		}
	})
}

// do runs one operation with the time that it may take.
func (k *keeper) do(operation func(context.Context) error) error {
	return operation(k.begin(time.Now()))
}

// spell is the time that operations of the store may take: one context for all that begin
// within spellStep, since a timer for each costs a question more than its encoding does.
type spell struct {
	ctx context.Context
	by  time.Time // operations that begin later get another one
}

const spellStep = time.Second

// begin returns the context of an operation that begins now. The ones before end by
// themselves: there are operations that have them.
func (k *keeper) begin(now time.Time) context.Context {
	s := k.spell.Load()
	if s == nil || now.After(s.by) {
		ctx, cancel := context.WithTimeout(k.patience, storeTimeout+spellStep)
		context.AfterFunc(ctx, cancel)
		s = &spell{ctx, now.Add(spellStep)}
		k.spell.Store(s)
	}
	return s.ctx
}

// timeFor returns the context of an operation of a session with so many bytes, which begins now. Of those that may have to wait for
// others it says whose they are: a store that has them do so bounds them itself.
func (k *keeper) timeFor(s *Session, bytes int) context.Context {
	ctx := k.begin(time.Now())
	if bytes < store.Large && !store.Crowded(k.store) {
		return ctx
	}
	return store.WithTurn(ctx, store.Turn{Owner: s.account.Owner(), Patience: k.patience})
}

// pause passes the time between two tries of one operation, and reports whether there is time for another.
func (k *keeper) pause() bool {
	select {
	case <-time.After(tryAgain):
		return true
	case <-k.ctx.Done():
		return false
	}
}

// report logs that an operation failed. That the store cannot be reached was logged
// when that began.
func (k *keeper) report(what string, err error) {
	switch {
	case errors.Is(err, budget.ErrNoRoom):
		k.crowded.Warn().Err(err).Msg("the store of sessions has no room for more of a client: " + what)
	case errors.Is(err, ErrNoTurn): // the store has not failed
		k.set.opt.Logger.Debug().Err(err).Msg("a call was not read: " + what)
	case errors.Is(err, store.ErrUnreachable):
		k.set.opt.Logger.Debug().Err(err).Msg("the store of sessions fails: " + what)
	case err != nil:
		k.set.opt.Logger.Warn().Err(err).Msg("the store of sessions fails: " + what)
	}
}

// end removes a session from the store, before its client is told: it must not go on in another replica, nor in the next process.
func (k *keeper) end(s *Session) error {
	left := k.elsewhere(s, s.account)
	s.stored.deleted.Store(true)
	if err := k.do(func(ctx context.Context) error { return k.store.End(ctx, k.name(s.rec.ID)) }); err != nil {
		s.stored.deleted.Store(false)
		k.report("removing a session", err)
		return err
	}
	tellAll(left)
	s.stored.mu.Lock()
	s.stored.gone = true
	s.stored.mu.Unlock()
	s.stored.kept.Release()
	return nil
}

// causeOf returns by what cause a session ends here: it lasts as long as its calls in the store, for which it need not be here.
func (k *keeper) causeOf(s *Session, cause sessions.Cause) sessions.Cause {
	if cause == sessions.Expired && s.stored.shelf.holds() {
		return sessions.Rested
	}
	return cause
}

// ended takes note of the end of a session. At a shutdown, and when it had to make room
// for others, it can come back.
func (k *keeper) ended(s *Session, cause sessions.Cause) {
	s.stored.mu.Lock()
	over := s.stored.gone || s.stored.version == 0
	s.stored.gone = true
	s.stored.mu.Unlock()
	name := k.name(s.rec.ID)
	k.forget(name, s)
	forGood := cause == sessions.Removed || cause == sessions.Dismissed || cause == sessions.Elsewhere
	if forGood || cause == sessions.Expired && !k.shared {
		s.stored.kept.Release()
	}
	switch {
	case over:
	case !forGood && cause != sessions.Expired:
		k.keepUntil(k.ttlOf(s))
	case cause == sessions.Expired && k.shared: // perhaps only here
	case forGood:
		left := k.elsewhere(s, s.account)
		k.report("removing a session", k.do(func(ctx context.Context) error { return k.store.End(ctx, name) }))
		tellAll(left)
	case cause == sessions.Expired:
		k.removeLater(s)
	}
}

// unloads reports whether anything leaves memory before its end.
func (k *keeper) unloads() bool { return k.set.opt.Unload > 0 }

// blind reports whether nobody knows which of those that share the store live.
func (k *keeper) blind() bool { return k.shared && k.set.opt.Blind }

// keepUntil notes that a session is left to the store, whose record lasts for so long.
func (k *keeper) keepUntil(ttl time.Duration) {
	until := time.Now().Add(ttl).UnixNano()
	for before := k.until.Load(); before < until && !k.until.CompareAndSwap(before, until); {
		before = k.until.Load()
	}
}

// note says whether the store has yet to get what a session has changed.
func (k *keeper) note(s *Session, unsaved bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !unsaved {
		delete(k.unsaved, s)
		return
	}
	k.unsaved[s] = true
	k.wake()
}

func (k *keeper) wake() { signal(k.retry) }

// signal puts one into a channel that holds one, if there is none.
func signal(one chan struct{}) {
	select {
	case one <- struct{}{}:
	default:
	}
}

func (k *keeper) countUnsaved() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.unsaved)
}
