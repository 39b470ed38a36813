package relayed

import (
	"context"
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Options says of what server sessions are remembered. Capacity and Idle are needed.
type Options struct {
	// Capacity bounds how many are remembered in memory, Idle for how long after their last use.
	Capacity int
	Idle     time.Duration
	// Guarded says that the server does not see who asks it: then a session is of whoever
	// opened it, and to everybody else it doesn't exist. Otherwise the server judges.
	Guarded bool
	// Store keeps what is known beyond the process, nil: nothing does. Scope names the server
	// at its endpoint.
	Store store.Store
	Scope string
	Room  *budget.Room // of the store; nil: without bounds
	Log   zerolog.Logger
}

// Owner is who opens a session, or asks for one.
type Owner struct {
	Principal string // opaque; "" is anonymous
	Tenant    string // whose share of the memory it takes
}

// Sessions are those of one server at one endpoint. The methods are safe for concurrent use.
type Sessions struct {
	opt    Options
	seldom zerolog.Logger // for what the store could not do

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // what goes on behind requests: records that are removed, or live on

	mu    sync.Mutex // guards what follows
	table *sessions.Table[*session]
	heir  *Sessions // nil: nobody has taken over what is known here
	looks bool      // somebody looks after sessions that are busy
}

// session is one that is known in memory.
type session struct {
	id      string
	owner   Owner
	met     bool         // nobody knows who opened it
	looked  atomic.Int64 // when the store was looked at; UnixNano
	touched atomic.Int64 // when its record was made to live on; UnixNano
	saved   atomic.Bool  // there is a record
	began   atomic.Int64 // what that says; UnixNano
	visits  atomic.Int64 // requests under way
	room    budget.Kept  // what that takes
}

// New returns a memory of no session.
func New(opt Options) *Sessions {
	s := &Sessions{opt: opt, seldom: logfield.Seldom(opt.Log)}
	s.table = s.empty()
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

func (s *Sessions) empty() *sessions.Table[*session] {
	return sessions.NewTable(sessions.TableOptions[*session]{Capacity: s.opt.Capacity, Idle: s.opt.Idle, Recent: recentUse, Busy: (*session).busy})
}

// recentUse is how long a session that was used makes no room for others, as those of the bridge.
const recentUse = time.Minute

// Open remembers a session that somebody has opened. It is kept before it returns, as well as
// the store can be reached: another replica may be asked for it next.
func (s *Sessions) Open(ctx context.Context, id string, owner Owner) {
	one := &session{id: id, owner: owner, room: s.opt.Room.Empty()}
	_ = s.last().save(context.WithoutCancel(ctx), one, storeTimeout) // whoever hears of it, the server has it
	s.put(one)
}

// Met remembers a session of which nobody here knows who opened it. What another process has kept of it lives on
// while it is used, beside its requests; else it is not kept: it tells only that requests of it have come here.
func (s *Sessions) Met(id string) {
	if s.opt.Guarded || s.get(id) != nil {
		return
	}
	one := &session{id: id, met: true}
	s.put(one)
	now := s.last()
	now.mu.Lock()
	defer now.mu.Unlock()
	if now.opt.Store != nil && now.ctx.Err() == nil {
		now.work.Go(func() { _, _ = now.isCurrent(now.ctx, one) })
	}
}

// Unmet is told that the server may have lost a session right before it was met.
func (s *Sessions) Unmet(id string) {
	if one := s.get(id); one != nil && one.met {
		s.drop(id)
	}
}

// put has a session stand in memory, in place of an earlier one of the same id. What was only met
// takes the place of none.
func (s *Sessions) put(one *session) { s.place(one, false) }

// place is put, or, for what is inherited, which may have ended and been opened anew by now, what has it stand in place of none
// that is newer.
func (s *Sessions) place(one *session, inherited bool) {
	s.mu.Lock()
	if heir := s.heir; heir != nil {
		s.mu.Unlock()
		heir.place(one, inherited)
		return
	}
	defer s.mu.Unlock()
	s.table.Expire()
	before, known := s.table.Get(one.id)
	switch {
	case one.met && (known || s.opt.Guarded):
		return
	case inherited && known && !before.met && before.began.Load() >= one.began.Load():
		release(one, before)
		return
	case known:
		release(before, one)
	}
	s.table.Remove(one.id)
	_ = s.table.Add(one.owner.Tenant, one.id, one) // where there is no place for it the store has it, if anybody
	s.lookAfterLocked()
}

// release gives back what the record of a session takes that has made room for another one of its id: who read the same takes
// the same room.
func release(one, other *session) {
	if one.began.Load() != other.began.Load() {
		one.room.Release()
	}
}

// disown removes one session from memory, and from that of who took over, but none that was opened since under its id.
func (s *Sessions) disown(one *session) {
	s.mu.Lock()
	heir := s.heir
	if now, known := s.table.Get(one.id); known && now == one {
		s.table.Remove(one.id)
	}
	s.mu.Unlock()
	if heir != nil {
		heir.disown(one)
	}
}

// Room reports whether another session of a tenant would be remembered.
func (s *Sessions) Room(tenant string) bool {
	table, _ := s.last().present()
	table.Expire()
	return table.Room(tenant)
}

// Find reports whether a session is known, and is one of who asks, if that matters. An error says
// that the store, which may know it, cannot be asked.
func (s *Sessions) Find(ctx context.Context, id string, who Owner) (bool, error) {
	ctx = context.WithoutCancel(ctx) // a client that has gone shows nothing of the store
	one, now := s.use(ctx, id), s.last()
	if one == nil {
		var err error
		if one, err = now.load(ctx, id, who); one == nil {
			return false, err
		}
	}
	return now.serves(one, who), nil
}

// Use is told that a session is used, whoever does.
func (s *Sessions) Use(ctx context.Context, id string) { s.use(context.WithoutCancel(ctx), id) }

// use returns a session that is known in memory, unless it has ended elsewhere.
func (s *Sessions) use(ctx context.Context, id string) *session {
	one := s.get(id)
	if one == nil {
		return nil
	}
	if current, _ := s.last().isCurrent(ctx, one); !current {
		s.drop(id)
		return nil
	}
	return one
}

// serves reports whether a session is one of who asks.
func (s *Sessions) serves(one *session, who Owner) bool {
	return !s.opt.Guarded || !one.met && subtle.ConstantTimeCompare([]byte(one.owner.Principal), []byte(who.Principal)) == 1
}

// Keeps reports whether a session, whoever's it is, is known in memory or in the store, or may be there for all
// that is known.
func (s *Sessions) Keeps(ctx context.Context, id string) bool {
	if s.get(id) != nil {
		return true
	}
	now := s.last()
	if now.opt.Store == nil {
		return false
	}
	kept, _, err := now.read(context.WithoutCancel(ctx), id, storeTimeout)
	return kept != nil || err != nil
}

// Kept reports whether the store has a session that was opened before a moment.
func (s *Sessions) Kept(ctx context.Context, id string, before time.Time) bool {
	if s.opt.Store == nil {
		return false
	}
	kept, _, _ := s.read(context.WithoutCancel(ctx), id, storeTimeout) // whoever asks next says it where the store is away
	return kept != nil && kept.Began.Before(before)
}

// get returns a session that is known in memory, here or where that went.
func (s *Sessions) get(id string) *session {
	table, heir := s.present()
	if one, ok := table.Get(id); ok {
		return one
	}
	if heir != nil {
		return heir.get(id)
	}
	return nil
}

// Holds reports whether a session is known in memory, and counts as a use of it. What another one has
// taken over is not held here any more.
func (s *Sessions) Holds(id string) bool {
	table, _ := s.present()
	_, ok := table.Get(id)
	return ok
}

// Len returns how many are held.
func (s *Sessions) Len() int {
	table, _ := s.present()
	table.Expire()
	return table.Len()
}

func (s *Sessions) present() (*sessions.Table[*session], *Sessions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table, s.heir
}

// last returns who has what is known here now.
func (s *Sessions) last() *Sessions {
	for {
		_, heir := s.present()
		if heir == nil {
			return s
		}
		s = heir
	}
}

// Bequeath has another one, of the same server at the same endpoint, go on with all that is known
// here, and with what is learnt here from now on. Nothing is unknown to both meanwhile. One such change is made at
// a time. Where only one of them has the server judge whose a session is, all stay here: the other one would
// not know whose they are, or give them to everybody.
func (s *Sessions) Bequeath(to *Sessions) {
	differs := s == to.last() || s.opt.Guarded != to.opt.Guarded
	s.mu.Lock()
	if s.heir != nil || differs {
		s.mu.Unlock()
		return
	}
	s.heir = to
	table := s.table
	s.mu.Unlock()
	for _, use := range table.All() {
		to.place(use.Value, true)
		if now, known := table.Get(use.Value.id); !known || now != use.Value { // it has ended meanwhile
			to.disown(use.Value)
		}
	}
	s.mu.Lock()
	s.table = s.empty()
	s.mu.Unlock()
}

// Forget is told that a session has ended.
func (s *Sessions) Forget(id string) {
	s.drop(id)
	s.last().remove(context.Background(), id)
}

// drop removes a session from memory, and from that of who took over.
func (s *Sessions) drop(id string) {
	table, _ := s.present()
	if one, ok := table.Get(id); ok {
		one.room.Release()
	}
	table.Remove(id)
	if _, heir := s.present(); heir != nil { // by now: it takes over what is not removed yet
		heir.drop(id)
	}
}

// ForgetAll is told that the server has lost all of its sessions. It does not wait for the store. What another one
// has taken over is that one's: it learns itself what becomes of the server.
func (s *Sessions) ForgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heir != nil {
		return
	}
	lost := s.table
	s.table = s.empty()
	if s.opt.Store != nil && s.ctx.Err() == nil {
		s.work.Go(func() { s.removeAll(lost.All()) })
	}
}

// Close returns when nothing goes on any more. What is kept stays.
func (s *Sessions) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.work.Wait()
}
