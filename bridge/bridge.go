package bridge

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/roster"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Options configures a Bridge. Upstream is required; every zero value means
// its default.
type Options struct {
	Upstream upstream.Caller
	Prober   *negotiate.Prober // judges the upstream and caches its server/discover
	Name     string            // stands in for a serverInfo that the upstream does not send
	Modern   http.Handler      // serves modern requests verbatim; nil refuses them (Q1)
	// Connected does so for one connection; nil refuses them.
	Connected func() downstream.Conversation
	Rules     translate.Rules // how results are brought down; Version is each session's own
	Limits    Limits
	// OneIdentity says that the server is told of no client's credentials, so that all
	// clients are one to it: what it says to one may be told to all.
	OneIdentity bool
	Draft       func() bool     // whether the upstream speaks a draft, in which lists may ask, too (I-4); nil: never
	Watch       observe.Watcher // is told what ends; nil: nobody is
	Seat        downstream.Seat // of this replica, in the ids of questions
	Ask         *ask.Room       // answers for clients that cannot be asked; nil: nobody does
	// Wait is how long a call waits for a person on a page before it is answered with
	// the page's link; the flow goes on and waits for the same call. Zero: no longer than
	// it takes to ask.
	Wait time.Duration
	// Patience tells how long a client waits for the answer of a call, by its clientInfo;
	// 0: for as long as it takes. Shortly before, a call whose person has not answered yet
	// is answered as above. Nil: every client waits.
	Patience func(clientInfo []byte) time.Duration
	Log      zerolog.Logger
}

// Limits bounds what one session and one flow may use.
type Limits struct {
	Flow            mrtr.Limits
	FlowsPerSession int // suspended flows; the oldest makes room; default 32
	Subscriptions   int // resource URIs per session, of 1 KiB on average; default 256
	Listens         int // listens that sessions share, one for each identity; default 1024
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
	opt     Options
	limits  Limits
	flows   mrtr.Limits // of every flow; never changed
	log     zerolog.Logger
	listens *subscriptions.Hub
	catalog *catalog.Catalog
	omitted omissions
	ruled   [len(mcp.Legacy)]translate.Rules // for clients of mcp.Legacy
	kept    keptCalls                        // of requests without a session
	serial  atomic.Uint64                    // numbers calls, for progress tokens and log lines

	working sync.WaitGroup // work that belongs to no call any more

	mu            sync.Mutex
	conversations roster.Set[*conversation]
	closed        bool
}

// New returns a Bridge. Close it to end its listens and sessions.
func New(opt Options) *Bridge {
	b := &Bridge{
		opt:    opt,
		limits: opt.Limits.withDefaults(),
		flows:  opt.Limits.Flow.WithDefaults(),
		log:    opt.Log,

		catalog: catalog.New(opt.Prober),
	}
	b.listens = subscriptions.NewHub(subscriptions.Options{
		Upstream: opt.Upstream, Catalog: b.catalog, Listens: b.limits.Listens, Log: opt.Log,
	})
	for i, version := range mcp.Legacy {
		b.ruled[i] = b.newRules(version)
	}
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

// Open implements downstream.Backend: it answers initialize from the upstream's
// server/discover, cached or fresh, and never forwards it.
func (b *Bridge) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	version, rpcErr := negotiate.Version(rawjson.Get(req.Params, "protocolVersion"))
	if rpcErr != nil {
		return nil, nil, rpcErr
	}
	clientInfo, capabilities := rawjson.Get(req.Params, "clientInfo"), rawjson.Get(req.Params, "capabilities")
	if size := len(clientInfo) + len(capabilities) + len(caller.Authorization); size > b.limits.Declaration {
		return nil, nil, tooMuchDeclared(size, b.limits.Declaration)
	}
	server, err := b.discover(ctx, caller)
	if err != nil {
		return nil, nil, err
	}
	result, err := b.greet(version, server, push != nil)
	if err != nil {
		return nil, nil, fault.Internal(err.Error())
	}
	conv := b.newConversation(version, caller, server, push)
	conv.declare(clientInfo, capabilities)
	conv.early.ended(req.ID) // a cancellation of initialize is nobody else's either
	if !b.adopt(conv) {
		return nil, nil, fault.Internal(ErrClosed.Error())
	}
	return conv, result, nil
}

// greet returns the InitializeResult for clients of a version that can or cannot
// listen.
func (b *Bridge) greet(version mcp.Version, server *catalog.Server, listen bool) ([]byte, error) {
	render := func() ([]byte, error) {
		return translate.InitializeResult(version, server.Discover, translate.InitOptions{
			Name: b.opt.Name, Profile: b.opt.Rules.Profile, Listen: listen,
			HostTasks: b.opt.Rules.HostTasks && listen, ListTasks: true, // each session sees its own
		})
	}
	if !listen {
		return render()
	}
	return server.Greeting(version, render)
}

// Stateless implements downstream.Backend: requests without a session are served,
// but their client cannot be asked on them, so no capability is mirrored.
// Who answers for clients does so for these, too.
func (b *Bridge) Stateless(caller downstream.Caller, version mcp.Version) downstream.Conversation {
	conv := b.newConversation(version, caller, catalog.Unknown, nil)
	conv.stranger = caller.Principal
	return conv
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
	b.kept.close(ErrClosed)
	b.listens.Close()
	b.working.Wait()
}

// background runs work that belongs to no call any more, and that Close awaits.
func (b *Bridge) background(work func()) { b.working.Go(work) }

// seenAs returns the principal that the server knows this one as.
func (b *Bridge) seenAs(principal string) string {
	if b.opt.OneIdentity {
		return ""
	}
	return principal
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

// discover returns what the upstream offers to caller. The error is ready for
// the client: *downstream.Refusal or *jsonrpc.Error. The answer may
// be cached for others, so the bridge asks in its own name.
func (b *Bridge) discover(ctx context.Context, caller downstream.Caller) (*catalog.Server, error) {
	principal := b.seenAs(caller.Principal)
	server, err := b.catalog.Discover(ctx, principal, upstream.NewPeer(b.opt.Upstream, upstream.Call{
		Principal:     principal,
		Authorization: caller.Authorization,
		Params:        translate.OwnParams(mcp.MethodDiscover, nil),
	}))
	if err != nil {
		return nil, b.refuse(err)
	}
	return server, nil
}
