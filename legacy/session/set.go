package session

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Options are those of the sessions of an endpoint. Backend, Streams, Gate, MaxSessions and
// IdleTimeout are needed.
type Options struct {
	Backend downstream.Backend
	Streams *stream.Endpoint
	Gate    *gate.Gate // counts what is under way
	NoPush  bool       // clients get nothing that no request of theirs asked for

	Principal          func(*http.Request) string                            // who a request acts for; nil: a hash of its credentials (H-6)
	CredentialsEndHere bool                                                  // the server never sees them
	Vouched            func(string) bool                                     // whether it vouches for these; nil: for all
	Genuine            func(tenant, bound, newer string, accepted bool) bool // whether the newer is no forgery of the other; nil: what it accepts is none

	MaxSessions int
	IdleTimeout time.Duration  // life of an unused session
	Memory      *budget.Budget // nil: without bounds

	Store      store.Store // nil: sessions end with the process
	StoreScope string
	Room       *budget.Room // of the store; nil: without bounds
	Replica    downstream.ReplicaID

	// Unload is how long a question waits in memory while its client is not connected, and a session that
	// nobody uses; 0: they stay. MaxUnloaded bounds the calls of a session that are in the store
	// alone. With Calls, without which no call goes on in another process, Others is needed.
	Unload      time.Duration
	MaxUnloaded int
	Calls       Calls
	Others      func() []downstream.ReplicaID // the replicas that are alive, without this one
	Blind       bool                          // nobody knows of those that share the store

	Watch   observe.Watcher // nil: nobody is told
	Logger  zerolog.Logger
	Evicted zerolog.Logger // for lines about sessions that had to go for others
	Late    zerolog.Logger // for lines about refusals that came too late for their requests
}

// Calls knows what the records of calls say. It is package exchange's.
type Calls interface {
	// Home returns the replica that a call is in; ErrOver: the record is its last word.
	Home(call *store.Record) (downstream.ReplicaID, error)
	// Due returns when something is due to a call that no replica has in memory.
	Due(call *store.Record) (time.Time, error)
	// GoOn takes a call over, if it is not here already. The error is ErrGone when somebody else has.
	GoOn(s *Session, caller downstream.Caller, call *store.Record) error
	// Fail has its last word take the place of a call that nobody could go on with, and that says so. The error is ErrOver when it
	// has one.
	Fail(call *store.Record, room *budget.Room, keep func(store.Change) error) error
	// Conclude has the last word of a call that has ended here take its place, which the store has come back with. The error is ErrOver
	// when that has one.
	Conclude(s *Session, call *store.Record, keep func(store.Change) error) error
	// GiveUp returns what is to be done once a call is removed which is not here, and its session with it: it tells the server that nobody
	// needs it any more, unless the session has no conversation, and gives back what this replica has counted for it in the store. nil: nothing.
	GiveUp(s *Session, caller downstream.Caller, call *store.Record) (tell func(), err error)
}

// ErrOver says that nothing of a call is left but its last word.
var ErrOver = errors.New("the call is over")

// ErrNoTurn says that a record was not read since others were all the while. It may be another time: memory need not be short.
var ErrNoTurn = errors.New("too many large calls are read at once; try again later")

// passAtOnce is how many large records are read at a time; those of one tenant are half of that.
const passAtOnce = 4

// RecentUse is how long after its last use a session is not evicted.
const RecentUse = time.Minute

// Set are the sessions of one endpoint: those that are live here, and those in its store.
// Its owner calls Expire and Close. The methods are safe for concurrent use.
type Set struct {
	opt    Options
	start  time.Time
	table  *sessions.Table[*Session]
	keeper *keeper // nil: sessions end with the process
	proofs *proofs
	ids    *ids

	passing *turns.Queue // of large records that are read

	vacated atomic.Bool // sessions come back elsewhere
}

// NewSet returns a set that has no session here yet.
func NewSet(opt Options) *Set {
	set := &Set{opt: opt, start: time.Now(), proofs: newProofs(), ids: newIDs(opt.StoreScope, opt.MaxSessions, opt.IdleTimeout), passing: turns.New(passAtOnce)}
	set.table = sessions.NewTable(sessions.TableOptions[*Session]{
		Capacity: opt.MaxSessions, Idle: opt.IdleTimeout, Recent: RecentUse, Busy: (*Session).Busy, Owes: (*Session).keepsResponse, Ended: (*Session).end,
	})
	if opt.Store != nil {
		set.keeper = newKeeper(set)
	}
	return set
}

// Len returns how many sessions are live here.
func (set *Set) Len() int { return set.table.Len() }

// Room reports whether there is a place for one more of a tenant.
func (set *Set) Room(tenant string) bool { return set.table.Room(tenant) }

// Holds reports whether id names a live session here. It counts as a use of it.
func (set *Set) Holds(id string) bool {
	_, live := set.table.Get(id)
	return live
}

// Owns reports whether an id is that of a session of this endpoint, live or ended, here or elsewhere.
func (set *Set) Owns(id string) bool { return set.Holds(id) || set.ids.own(id) }

// Keeps reports whether sessions may be in the store that are live nowhere in this process: those that
// left memory, that a process before this one has left, or that another replica has.
func (set *Set) Keeps() bool {
	k := set.keeper
	return k != nil && (k.shared || time.Now().UnixNano() < k.until.Load())
}

// Astray says that calls may have been left to the store which nobody comes for by the clock, though their replica lives.
func (set *Set) Astray() {
	if set.keeper != nil {
		set.keeper.astray.Store(true)
	}
}

// Expire ends the sessions that were not used for too long.
func (set *Set) Expire() { set.table.Expire() }

// Close ends all sessions in this process. Those in the store can come back in another.
func (set *Set) Close() {
	if set.keeper != nil {
		set.keeper.hurry()
		set.keeper.leave()
	}
	set.table.Close()
	if set.keeper != nil {
		set.keeper.close()
	}
}

// Vacate ends the sessions that have nothing under way and owe nothing, and has none come back here from the store any more:
// another set of the same store may have them from now on. Its owner has begun to refuse requests.
func (set *Set) Vacate() {
	set.vacated.Store(true)
	set.table.Vacate((*Session).Owes)
}

// Owes reports whether one of the sessions does.
func (set *Set) Owes() bool {
	for _, use := range set.table.All() {
		if use.Value.Owes() {
			return true
		}
	}
	return false
}

// Renew makes sure of the calls that are kept, after a time in which other
// replicas may have taken this one for dead.
func (set *Set) Renew() { set.eachKept(downstream.Conversation.Renew) }

// Leave has the calls that wait for their clients go on in another process.
func (set *Set) Leave() { set.eachKept(downstream.Conversation.Leave) }

func (set *Set) eachKept(do func(downstream.Conversation)) {
	for _, use := range set.table.All() {
		if use.Value.stored != nil {
			do(use.Value.conv)
		}
	}
}

// Look tells what there is to see of every session at this moment.
func (set *Set) Look() []observe.Sight {
	open := set.table.All()
	seen := make([]observe.Sight, 0, len(open))
	for _, use := range open {
		sight := use.Value.look()
		sight.Used = use.At
		seen = append(seen, sight)
	}
	return seen
}

// called returns the session with this shortened id, nil: there is none.
func (set *Set) called(short string) *Session {
	for _, use := range set.table.All() {
		if logfield.Short(use.Value.rec.ID) == short {
			return use.Value
		}
	}
	return nil
}

// EndCall ends a call of the session with this shortened id, and reports whether there was one.
func (set *Set) EndCall(short, id string) bool {
	s := set.called(short)
	return s != nil && s.conv.EndCall(id)
}

// End ends the session with this shortened id, as who runs the bridge wants it, and reports whether there was one.
func (set *Set) End(short string) bool {
	s := set.called(short)
	return s != nil && set.table.End(s.rec.ID, sessions.Dismissed)
}

// vouched reports whether credentials are more than somebody says: they were checked here,
// or the server accepts them.
func (set *Set) vouched(auth string) bool {
	return set.opt.Principal != nil || set.opt.Vouched == nil || set.opt.Vouched(auth)
}

// New returns a session of who brings these credentials, and has said so much of itself. It is
// nobody's until it is opened and listed. The error is that of its account. A request's header is
// a part of all of its head, which a session must not keep: its credentials are copies.
func (set *Set) New(caller downstream.Caller, declared int) (*Session, error) {
	s := &Session{set: set, auth: strings.Clone(caller.Authorization), share: caller.Tenant, born: time.Since(set.start)}
	var err error
	if s.account, err = OpenAccount(set.opt.Memory, caller.Tenant, declared+len(caller.Authorization)); err != nil {
		return nil, err
	}
	s.share = cmp.Or(s.account.Owner(), s.share) // the same words, which all of one address share then
	s.streams.Init(set.opt.Streams, s, &s.rec, s.account, set.keeper.number())
	return s, nil
}
