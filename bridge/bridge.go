package bridge

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/roster"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Options configures a Bridge. Upstream is required; every zero value means
// its default.
type Options struct {
	Upstream upstream.Caller
	Catalog  *catalog.Catalog // what is known of the server; required for sessions
	Name     string           // stands in for a serverInfo that the upstream does not send
	Modern   http.Handler     // serves modern requests verbatim; nil refuses them (Q1)
	// Connected does so for one connection; nil refuses them.
	Connected func() downstream.Conversation
	Rules     translate.Rules // how results are brought down; Version is each session's own
	Limits    Limits
	// OneIdentity says that the server is told of no client's credentials, so that all
	// clients are one to it: what it says to one may be told to all.
	OneIdentity bool
	// ByToken says that what the server tells a client hangs on the token that it came with,
	// of which one person may have several with different rights: what it said to one is
	// not told to another.
	ByToken  bool
	ListsAsk func() bool // whether lists may ask, too (I-4); nil: never
	// Hint says what would make sense of a result that was refused, for the log (I-5); nil:
	// nothing does.
	Hint    func(result []byte) string
	Watch   observe.Watcher      // is told what ends; nil: nobody is
	Replica downstream.ReplicaID // of this replica, in the ids of questions
	// Shared says that other replicas may serve a client's next request, Peers that they hand what
	// waits here of a session on.
	Shared, Peers bool
	Ask           *ask.Room // answers for clients that cannot be asked; nil: nobody does
	// Wait is how long a call waits for a person on a page before it is answered with
	// the page's link; the flow goes on and waits for the same call. Zero: no longer than
	// it takes to ask.
	Wait time.Duration
	// Patience tells how long a client waits for the answer of a call, by its clientInfo;
	// 0: for as long as it takes. Shortly before, a call whose person has not answered yet
	// is answered as above. Nil: every client waits.
	Patience func(clientInfo []byte) time.Duration
	// Stopping reports that no request is taken any more, so that no answer of a person may wait for one;
	// nil: they are, until Close.
	Stopping func() bool
	// Endless is how much of the process all that is at a server without a turn may take,
	// whatever it is; nil: as much as it likes.
	Endless *budget.Places
	Log     zerolog.Logger
}

// Limits bounds what one session and one flow may use.
type Limits struct {
	Flow            mrtr.Limits
	FlowsPerSession int // suspended flows; the oldest makes room; default 32
	Subscriptions   int // resource URIs per session, of 1 KiB on average; default 256
	Listens         int // listens, one for each identity and each session with resources; default 1024
	Declaration     int // bytes of client info, capabilities and Authorization; default 64 KiB
}

func (l Limits) withDefaults() Limits {
	l.FlowsPerSession = cmp.Or(l.FlowsPerSession, 32)
	l.Subscriptions = cmp.Or(l.Subscriptions, 256)
	l.Declaration = cmp.Or(l.Declaration, 64<<10)
	return l
}

// ErrClosed ends the sessions of a Bridge that shuts down.
var ErrClosed = downstream.ErrStopping

// Bridge translates between legacy clients and one modern upstream. It
// implements downstream.Backend and is safe for concurrent use.
type Bridge struct {
	opt      Options
	limits   Limits
	driver   *call.Driver // of every call
	log      zerolog.Logger
	unserved zerolog.Logger // of clients that could not be served
	listens  *subscriptions.Hub
	catalog  *catalog.Catalog
	rules    rulebook
	replies  *again.Replies // of requests without a session

	mu            sync.Mutex
	conversations roster.Set[*conversation]
	closed        bool
}

// New returns a Bridge. Close it to end its listens and sessions.
func New(opt Options) *Bridge {
	if opt.Catalog == nil {
		opt.Catalog = catalog.New(nil, nil)
	}
	b := &Bridge{
		opt:      opt,
		limits:   opt.Limits.withDefaults(),
		log:      opt.Log,
		unserved: logfield.Seldom(opt.Log),

		catalog: opt.Catalog,
		replies: new(again.Replies), // which outlive the bridge where others have joined them
	}
	b.replies.Limit(b.limits.FlowsPerSession)
	b.listens = subscriptions.NewHub(subscriptions.Options{
		Upstream: opt.Upstream, Catalog: b.catalog, Listens: b.limits.Listens, Endless: opt.Endless, Log: opt.Log,
	})
	b.driver = call.NewDriver(call.Options{
		Upstream: opt.Upstream, Catalog: b.catalog, Ask: opt.Ask, Replica: opt.Replica, Shared: opt.Shared, Peers: opt.Peers, Watch: opt.Watch,
		Alive: b.listens.Alive, ListsAsk: opt.ListsAsk, Hint: opt.Hint, Flows: opt.Limits.Flow.WithDefaults(), Waiting: b.limits.FlowsPerSession,
		OneIdentity: opt.OneIdentity, ByToken: opt.ByToken, Wait: opt.Wait, Patience: opt.Patience, Stopping: opt.Stopping, Log: opt.Log,
	})
	b.rules.write(&b.opt)
	return b
}

// Modern implements downstream.Backend.
func (b *Bridge) Modern() http.Handler { return b.opt.Modern }

// Connected implements downstream.Backend.
func (b *Bridge) Connected() downstream.Conversation {
	if b.opt.Connected == nil {
		return nil
	}
	return b.opt.Connected()
}

// Relayer implements downstream.Backend: there is no server of the clients' own era.
func (b *Bridge) Relayer() downstream.Relayer { return nil }

// Due implements downstream.Backend.
func (*Bridge) Due(flow []byte) (time.Time, error) {
	f, err := mrtr.Decode(flow)
	if err != nil {
		return time.Time{}, err
	}
	return f.Unattended(), nil
}

// Succeed has requests without a session go on with what waits for them at the bridge whose place this one takes, and
// at those before that. The callers of both must be known in one way. It comes before the first request.
func (b *Bridge) Succeed(before *Bridge) { b.replies.Join(before.replies) }

// Waiting returns how many calls without a session, and outcomes of such, wait for the same call again.
func (b *Bridge) Waiting() int { return b.replies.Len() }

// lookAgain is how often it is looked whether calls have been answered.
const lookAgain = 50 * time.Millisecond

// Drain returns when no request waits for a call without a session any more, or ctx ends: a request that goes on with one
// is under way at the bridge that has taken this one's place.
func (b *Bridge) Drain(ctx context.Context) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for b.replies.Awaited() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Changed tells every client that all lists may have changed, for when the server
// is seen with other eyes than before.
func (b *Bridge) Changed() { b.listens.AnnounceAll() }

// Close ends every session and listen. It returns when no goroutine of the
// bridge is left, except for calls that upstream.Caller has yet to give up.
func (b *Bridge) Close() {
	b.mu.Lock()
	b.closed = true
	open := b.conversations.All()
	b.conversations = roster.Set[*conversation]{}
	b.mu.Unlock()
	for _, conv := range open {
		conv.Close(ErrClosed)
	}
	b.replies.Close(ErrClosed)
	b.listens.Close()
	b.driver.Await()
}

func (b *Bridge) adopt(conv *conversation) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.conversations.Add(conv)
	}
	return !b.closed
}

func (b *Bridge) forget(conv *conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conversations.Remove(conv)
}

var emptyObject = []byte("{}")
