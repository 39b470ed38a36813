package bridge

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// conversation is one client's session as the bridge sees it; it implements
// downstream.Conversation. There may be tens of thousands, so what most of them
// never use is made on first use.
type conversation struct {
	b             *Bridge
	rules         *translate.Rules // shared by all of its version
	server        *catalog.Server
	push          downstream.Pusher // nil: no channel for unrelated messages
	principal     string            // as far as the server can tell clients apart
	account       *budget.Account   // of the session
	authorization string            // of the initialize request, for work that nobody in particular caused (H-2)
	clientInfo    []byte            // as the client declared it; nil when stateless
	declared      []byte            // capabilities as the client declared them
	capable       []byte            // the same as 2026-07-28 has them, to declare upstream (A.5); nil when stateless

	stranger string // the principal of a request without a session, to know its next one by

	kept  keptCalls // that wait for the same call again
	tasks tasks.Set // that the bridge hosts for the client (mode 2)

	mu        sync.Mutex
	breaker   *breaker // nil while nothing is switched off
	level     string   // of logging/setLevel; empty: none asked for
	served    uint8    // which kinds the client has answered, a bit each
	announced bool     // initialized came, or a request that implies it
	closed    bool
	calls     []*call
	early     earlyCancels
	questions questions
	suspended mrtr.Suspended[*call]
	resources *subscriptions.Resources // nil until the first resources/subscribe
	spent     model.Spent              // sampling requests answered elsewhere
	nobody    string                   // the owner of its questions, when no principal is; empty until needed
}

func (b *Bridge) newConversation(version mcp.Version, caller downstream.Caller, srv *catalog.Server, push downstream.Pusher) *conversation {
	return &conversation{
		b:             b,
		rules:         b.rules(version),
		server:        srv,
		push:          push,
		principal:     b.seenAs(caller.Principal),
		account:       caller.Account,
		authorization: caller.Authorization,
		suspended:     mrtr.NewSuspended[*call](b.limits.FlowsPerSession),
	}
}

// declare keeps what the client says of itself, as raw JSON: sessions share it, since
// thousands of clients of one kind say the same. As far as the revision's
// capabilities exist in 2026-07-28, they are mirrored (A.5).
func (c *conversation) declare(clientInfo, capabilities []byte) {
	c.clientInfo = c.b.catalog.Share(clientInfo)
	c.declared = c.b.catalog.Share(capabilities)
	c.capable = c.declared // one copy of what most clients declare
	if caps := translate.ClientCapabilities(c.rules.Version, capabilities, true); !bytes.Equal(caps, c.declared) {
		c.capable = c.b.catalog.Share(caps)
	}
}

// rules returns the downlevel rules of sessions that negotiated version.
func (b *Bridge) rules(version mcp.Version) *translate.Rules {
	if i := slices.Index(mcp.Legacy[:], version); i >= 0 {
		return &b.ruled[i]
	}
	rules := b.newRules(version)
	return &rules
}

func (b *Bridge) newRules(version mcp.Version) translate.Rules {
	rules := b.opt.Rules
	rules.Version = version
	rules.Report = b.logOmission
	rules.AnsweredFor = b.opt.Ask != nil
	return rules
}

// logOmission logs what was left out of a list, so that one bad entry neither spoils
// the rest nor vanishes without a trace (B-23).
func (b *Bridge) logOmission(o translate.Omission) {
	b.omitted.note(o)
	b.log.Warn().Str(logfield.Method, o.Method).Str(logfield.Entry, o.Name).Str(logfield.Cause, o.Reason).
		Msg("an entry of the upstream's list is not shown to clients")
}

var emptyObject = []byte("{}")

// Orderly implements downstream.Conversation: calls run side by side.
func (c *conversation) Orderly() bool { return false }

// Version implements downstream.Conversation.
func (c *conversation) Version() mcp.Version { return c.rules.Version }

// Serve implements downstream.Conversation.
func (c *conversation) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if req.Method != mcp.MethodPing {
		c.announce()
	}
	if c.host(caller, req, out) || c.serveTasksResult(&req, out) {
		return
	}
	if serve, ok := localMethods[req.Method]; ok {
		began := time.Now()
		result, err := serve(c, ctx, caller, req)
		c.ended(req.ID)
		c.reportLocal(req.Method, began, err)
		finish(out, req.ID, result, err)
		return
	}
	if missing := unnamed(&req); missing != "" {
		c.ended(req.ID)
		finish(out, req.ID, nil, fault.Params(missing+" is missing or no string"))
		return
	}
	began := time.Now()
	if c.rejoin(caller, &req, out) {
		return
	}
	if k := c.newKeptCall(caller, req, out); (ending{k}).cached(&req) {
		c.reportLocal(req.Method, began, nil)
	} else {
		k.start()
	}
}

// unnamed returns the member that must name what req is about and does not. The
// upstream would refuse the request too, but for a header that legacy clients
// know nothing of (B.2).
func unnamed(req *downstream.Request) string {
	switch req.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		if rawjson.KindOf(req.Name) != rawjson.String {
			return "name"
		}
	case mcp.MethodResourcesRead:
		if rawjson.KindOf(req.URI) != rawjson.String {
			return "uri"
		}
	}
	return ""
}

// declares returns what a call tells the server of the client: its capabilities, and
// the level of log messages that it wants; empty: none.
func (c *conversation) declares() (capabilities []byte, level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.Logging {
		level = c.level
	}
	return c.capabilitiesLocked(), level
}

func (c *conversation) logLevel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// Notify implements downstream.Conversation. No client notification exists in
// 2026-07-28 over HTTP, so each is used up here (P-5).
func (c *conversation) Notify(caller downstream.Caller, msg jsonrpc.Message) {
	switch msg.Method {
	case mcp.NotificationInitialized:
		c.announce()
	case mcp.NotificationCancelled:
		c.cancelled(caller, jsonrpc.ID(rawjson.Get(msg.Params, "requestId")))
	}
}

// Knows implements downstream.Conversation.
func (c *conversation) Knows(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.early.knows(id) || slices.ContainsFunc(c.calls, func(k *call) bool { return k.goesBy() == id })
}

// ended notes that a request was answered that never became a registered call.
func (c *conversation) ended(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early.ended(id)
}

// cancelled ends the call that the client gave the id, silently (D-T13), be it
// here or about to come. Some clients send every request with the same id: then
// it is unknowable which one is meant, and none is ended (B-1).
func (c *conversation) cancelled(caller downstream.Caller, id jsonrpc.ID) {
	c.mu.Lock()
	var meant *call
	found := 0
	for _, k := range c.calls {
		if k.goesBy() != id || k.task != nil || !k.of(caller) {
			continue // a hosted task's request was answered; tasks/cancel ends it
		}
		meant = k
		found++
	}
	if found > 1 {
		meant = nil
		c.b.log.Debug().Int("calls", found).Msg("a cancellation names an id that several requests have; none is cancelled")
	}
	if found == 0 && c.tasks.Empty() { // else it may mean a tasks/result
		c.early.keep(id, caller.Principal)
	}
	c.mu.Unlock()
	if meant != nil {
		meant.drive(mrtr.Cancelled())
		return
	}
	c.tasks.Leave(id)
}

// Close implements downstream.Conversation: it ends every flow, and stops listening.
func (c *conversation) Close(cause error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	calls := append([]*call(nil), c.calls...)
	resources := c.resources
	c.mu.Unlock()

	last := mrtr.Cancelled() // D-T19
	if downstream.Audible(cause) {
		last = mrtr.Failed(cause)
	}
	for _, k := range calls {
		if !downstream.MayGoOn(cause) || !k.saving.waitsElsewhere() {
			k.drive(last)
		}
	}
	if resources != nil {
		resources.Close()
	}
	c.b.listens.Leave(c, c.principal)
	c.b.forget(c)
}

// enter registers a call; false means that the session is over, or that the call
// was cancelled already.
func (c *conversation) enter(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || k.task == nil && c.early.take(k) {
		return false
	}
	c.calls = append(c.calls, k)
	return true
}

// exit takes a call out of the tables. It is idempotent.
func (c *conversation) exit(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls {
		if c.calls[i] == k {
			last := len(c.calls) - 1
			c.calls[i], c.calls[last] = c.calls[last], nil
			c.calls = c.calls[:last]
			c.early.ended(k.flow.ID)
			break
		}
	}
	c.suspended.Remove(k)
}
