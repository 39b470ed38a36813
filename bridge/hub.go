package bridge

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/roster"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// hub shares one list-changed listen among all sessions of a principal (Q15):
// ten thousand idle clients cost the upstream one stream.
type hub struct {
	b  *Bridge
	wg sync.WaitGroup

	mu     sync.Mutex
	shared map[string]*sharedListen // by principal
	closed bool
}

// sharedListen is one principal's listen and who hears it.
type sharedListen struct {
	hub       *hub
	principal string
	methods   []string // what was asked for
	cancel    context.CancelFunc
	linger    *time.Timer // runs while nobody listens

	members roster.Set[*conversation] // guarded by hub.mu
}

// lingering keeps a listen that nobody hears for a while: clients that open a
// session per call would else open and close one each time.
const lingering = 30 * time.Second

func newHub(b *Bridge) *hub {
	return &hub{b: b, shared: make(map[string]*sharedListen)}
}

// join subscribes a conversation to what the server announces about its lists.
func (h *hub) join(c *conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	l := h.shared[c.principal]
	if l == nil {
		l = h.open(c)
	}
	if l.linger != nil {
		l.linger.Stop()
		l.linger = nil
	}
	l.members.Add(c)
}

// open starts the listen of c's principal with c's credentials. The caller holds mu.
func (h *hub) open(c *conversation) *sharedListen {
	ctx, cancel := context.WithCancel(context.Background())
	l := &sharedListen{hub: h, principal: c.principal, methods: announcements(c.server.Lists), cancel: cancel}
	h.shared[c.principal] = l
	keeper := &listener{
		up:    h.b.opt.Upstream,
		log:   h.b.log,
		call:  c.listenCall(listFilterParams(c.server.Lists)),
		event: l.deliver,
		gap:   l.announceAll,
	}
	h.wg.Go(func() { keeper.run(ctx) })
	return l
}

// leave is idempotent.
func (h *hub) leave(c *conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.shared[c.principal]
	if l == nil {
		return
	}
	l.members.Remove(c)
	if l.members.Len() == 0 && l.linger == nil && !h.closed {
		l.linger = time.AfterFunc(lingering, func() { h.retire(l) })
	}
}

// retire ends a listen that nobody has joined in the meantime.
func (h *hub) retire(l *sharedListen) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.members.Len() == 0 && h.shared[l.principal] == l {
		delete(h.shared, l.principal)
		l.cancel()
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for principal, l := range h.shared {
		delete(h.shared, principal)
		if l.linger != nil {
			l.linger.Stop()
		}
		l.cancel()
	}
	h.mu.Unlock()
	h.wg.Wait()
}

// deliver passes a list-changed notification to every member (C-22).
func (l *sharedListen) deliver(msg jsonrpc.Message) {
	if msg.Method == mcp.NotificationElicitationComplete {
		for _, c := range l.audience() {
			c.elicitationOver(msg)
		}
		return
	}
	if !slices.Contains(l.methods, msg.Method) {
		return // not asked for, so not advertised to anybody
	}
	l.hub.b.catalog.Invalidate(msg.Method, msg.Params)
	for _, c := range l.audience() {
		c.pushed(msg.Method, msg.Method, msg.Params)
	}
}

// announceAll says after a gap that everything may have changed: what did is
// unknowable (C-20).
func (l *sharedListen) announceAll() {
	for _, method := range l.methods {
		l.hub.b.catalog.Invalidate(method, nil)
	}
	for _, c := range l.audience() {
		for _, method := range l.methods {
			c.pushed(method, method, nil)
		}
	}
}

func (l *sharedListen) audience() []*conversation {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.members.All()
}

func announcements(f catalog.Lists) (methods []string) {
	if f.Tools {
		methods = append(methods, mcp.NotificationToolsListChanged)
	}
	if f.Prompts {
		methods = append(methods, mcp.NotificationPromptsListChanged)
	}
	if f.Resources {
		methods = append(methods, mcp.NotificationResourcesListChanged)
	}
	return methods
}

// pushed delivers a message that belongs to no request (C.3).
func (c *conversation) pushed(key, method string, params []byte) {
	if params, ok := c.rules.Notification(method, params); ok {
		c.push.Push(key, downstream.Notification(method, params))
	}
}

// listenCall builds a subscriptions/listen request on behalf of c. Nothing can
// be asked on it, so it declares no capability.
func (c *conversation) listenCall(filter []byte) *upstream.Call {
	return &upstream.Call{Method: mcp.MethodListen, Params: c.listenParams(filter), Principal: c.principal, Authorization: c.authorization}
}
