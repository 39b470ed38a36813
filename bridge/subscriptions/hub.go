package subscriptions

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/roster"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Options configures a Hub. Upstream and Catalog are required.
type Options struct {
	Upstream upstream.Caller
	Catalog  *catalog.Catalog // is told what became stale
	Listens  int              // that are open at the same time; default 1024
	// Endless is how much of the process all that never ends by itself may take, whatever it
	// is; nil: as much as it likes.
	Endless *budget.Places
	Log     zerolog.Logger
}

// Hub shares one listen for list changes among all sessions of a principal (Q15):
// ten thousand idle clients cost the upstream one stream. It is safe for concurrent
// use.
type Hub struct {
	opt   Options
	work  *gate.Gate // all listens, and what is about to begin one
	alive signal
	ended notice
	again notice
	full  notice
	long  notice

	running, pausing atomic.Int32 // listens

	mu     sync.Mutex
	shared map[string]*sharedListen // by principal
	taken  int                      // places, of listens that are shared or are not
	has    map[string]int           // how many of them, by party
	closed bool
}

// sharedListen is one principal's listen and who hears it.
type sharedListen struct {
	hub       *Hub
	principal string
	place     place
	methods   []string // what was asked for
	with      credentials
	cancel    context.CancelFunc

	// Guarded by hub.mu.
	members roster.Set[Session]
	linger  *time.Timer // runs while nobody listens
	idle    time.Time   // since when
	held    budget.Hold // of the principal's own account, since sessions come and go
}

// listenCost is what a listen is charged for, in bytes: a goroutine and a connection, with TLS.
const listenCost = 64 << 10

// lingering keeps a listen that nobody hears for a while: clients that open a
// session per call would else open and close one each time.
const lingering = 30 * time.Second

// NewHub returns a Hub. Close it to end its listens.
func NewHub(opt Options) *Hub {
	opt.Listens = cmp.Or(opt.Listens, 1024)
	return &Hub{opt: opt, work: gate.New(), shared: make(map[string]*sharedListen), has: make(map[string]int)}
}

// Listens returns how many listens are at work, and how many of them wait before they
// are opened again.
func (h *Hub) Listens() (all, waiting int) { return int(h.running.Load()), int(h.pausing.Load()) }

// Alive tells the hub that the server has just answered something: listens that
// wait to be opened again need not wait much longer. It costs little.
func (h *Hub) Alive() { h.alive.send() }

// Join has a session hear what the server announces about its lists, and reports whether
// it does: not when there are too many listens, or too few left for its party.
func (h *Hub) Join(s Session, as Identity, lists catalog.Lists) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	l := h.shared[as.Principal]
	if l == nil {
		if l = h.openLocked(as, lists); l == nil {
			return false
		}
	}
	l.with.offer(as.Authorization)
	if l.linger != nil {
		l.linger.Stop()
		l.linger = nil
	}
	l.members.Add(s)
	return true
}

// Renew has the listen of a principal go on with newer credentials, of a session that hears it.
func (h *Hub) Renew(principal, authorization string) {
	h.mu.Lock()
	l := h.shared[principal]
	h.mu.Unlock()
	if l != nil {
		l.with.offer(authorization)
	}
}

// openLocked starts the listen of a principal, nil when there are too many.
func (h *Hub) openLocked(as Identity, lists catalog.Lists) *sharedListen {
	at := h.takeLocked(as.Party)
	if at == nil {
		h.refused("a session will not hear of list changes")
		return nil
	}
	held := budget.On(as.Account.Guest())
	if err := held.Grow(listenCost); err != nil {
		h.giveLocked(at)
		if missed, ok := h.full.due(); ok {
			h.opt.Log.Warn().Err(err).Int("before", missed).Msg("no subscription at the server; a session will not hear of list changes")
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &sharedListen{held: held, hub: h, principal: as.Principal, place: *at, methods: announcements(lists), cancel: cancel}
	h.shared[as.Principal] = l
	l.with.offer(as.Authorization)
	keeper := &listener{hub: h, call: as.listen(listFilter(lists)), with: &l.with, held: budget.On(held.Account()), event: l.deliver, gap: l.announceAll}
	h.work.Go(func() { keeper.run(ctx, keeper.with.newest()) }) // who closes the hub waits for the lock, and shuts it afterwards
	return l
}

// Leave is idempotent.
func (h *Hub) Leave(s Session, principal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.shared[principal]
	if l == nil {
		return
	}
	l.members.Remove(s)
	if l.members.Len() == 0 && l.linger == nil && !h.closed {
		l.idle = time.Now()
		l.linger = time.AfterFunc(lingering, func() { h.retire(l) })
	}
}

// retire ends a listen that nobody has joined in the meantime.
func (h *Hub) retire(l *sharedListen) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.members.Len() == 0 && h.shared[l.principal] == l {
		h.endLocked(l)
	}
}

func (h *Hub) endLocked(l *sharedListen) {
	delete(h.shared, l.principal)
	h.giveLocked(&l.place)
	if l.linger != nil {
		l.linger.Stop()
	}
	l.cancel()
	l.held.Release()
}

// Close ends every shared listen. It returns when no listen is left, those of
// resources included, which end with their sessions.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, l := range h.shared {
		h.endLocked(l)
	}
	h.mu.Unlock()
	h.work.Shut()
	_ = h.work.Wait(context.Background()) // which doesn't end
}

// deliver passes a list-changed notification to every member (C-22).
func (l *sharedListen) deliver(msg jsonrpc.Message) {
	if msg.Method == mcp.NotificationElicitationComplete {
		id := elicitationID(msg.Params)
		for _, s := range l.audience() {
			s.ElicitationOver(id)
		}
		return
	}
	if !slices.Contains(l.methods, msg.Method) {
		return // not asked for, so not advertised to anybody
	}
	l.hub.opt.Catalog.Invalidate(msg.Method, msg.Params)
	params := listChanged(msg.Params)
	for _, s := range l.audience() {
		s.Announce(msg.Method, msg.Method, params)
	}
}

// announceAll says after a gap that everything may have changed: what did is
// unknowable (C-20).
func (l *sharedListen) announceAll() {
	for _, method := range l.methods {
		l.hub.opt.Catalog.Invalidate(method, nil)
	}
	for _, s := range l.audience() {
		for _, method := range l.methods {
			s.Announce(method, method, nil)
		}
	}
}

// AnnounceAll says to every session that all lists may have changed.
func (h *Hub) AnnounceAll() {
	h.mu.Lock()
	shared := slices.Collect(maps.Values(h.shared))
	h.mu.Unlock()
	for _, l := range shared {
		l.announceAll()
	}
}

func (l *sharedListen) audience() []Session {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.members.All()
}

func announcements(lists catalog.Lists) (methods []string) {
	if lists.Tools {
		methods = append(methods, mcp.NotificationToolsListChanged)
	}
	if lists.Prompts {
		methods = append(methods, mcp.NotificationPromptsListChanged)
	}
	if lists.Resources {
		methods = append(methods, mcp.NotificationResourcesListChanged)
	}
	return methods
}

func listFilter(lists catalog.Lists) []byte {
	var edits []rawjson.Edit
	for _, part := range []struct {
		name string
		on   bool
	}{
		{"toolsListChanged", lists.Tools},
		{"promptsListChanged", lists.Prompts},
		{"resourcesListChanged", lists.Resources},
	} {
		if part.on {
			edits = append(edits, rawjson.Edit{Name: part.name, Value: []byte("true")})
		}
	}
	return rawjson.Apply(nil, []byte("{}"), edits...)
}
