package bridge

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
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
	transport     observe.Transport // over which the client came
	authorization string            // of the initialize request, for work that nobody in particular caused (H-2)
	clientInfo    []byte            // as the client declared it; nil when stateless
	declared      []byte            // capabilities as the client declared them
	capable       []byte            // the same as 2026-07-28 has them, to declare upstream (A.5); nil when stateless

	stranger string // the principal of a request without a session, to know its next one by

	kept  again.Calls // that wait for the same call again
	tasks tasks.Set   // that the bridge hosts for the client (mode 2)

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
		transport:     caller.Transport,
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

// Orderly implements downstream.Conversation: calls run side by side.
func (c *conversation) Orderly() bool { return false }

// Version implements downstream.Conversation.
func (c *conversation) Version() mcp.Version { return c.rules.Version }

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

// ended notes that a request was answered that never became a registered call.
func (c *conversation) ended(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early.ended(id)
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

// await registers a question, so that its answer is recognised.
func (c *conversation) await(k *call, id jsonrpc.ID, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.add(id, key, k, false)
}

func (c *conversation) drop(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.remove(id)
}

// suspend puts a call into the LRU, and returns the one that must make room for it.
func (c *conversation) suspend(k *call) (evicted *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest, full := c.suspended.Add(k)
	if full && oldest != k {
		return oldest
	}
	return nil
}

func (c *conversation) resumed(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended.Remove(k)
}

func (c *conversation) underWay() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// changed tells who keeps the conversation that its record is another now.
func (c *conversation) changed() {
	if c.push != nil {
		c.push.Changed()
	}
}

// owner names, for nobody to read, whose questions the conversation's are.
func (c *conversation) owner() string {
	if c.principal != "" || c.stranger != "" {
		return cmp.Or(c.principal, c.stranger)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nobody == "" {
		c.nobody = rand.Text()
	}
	return c.nobody
}

// What a client cannot be asked is asked elsewhere, where the configuration says who
// answers (package ask). To the flow it makes no difference where an answer comes
// from: an inquiry is an effect like a question to the client, and its answer is the
// same event.

// asks returns who answers for the client; nil: nobody.
func (c *conversation) asks() *ask.Room { return c.b.opt.Ask }

// Hears implements again.Session: it reports whether a log message of a level is for the client: where it named no
// level, the server's own choice is left to the server (2025-11-25, logging).
func (c *conversation) Hears(level string) bool {
	wanted := c.logLevel()
	if wanted == "" {
		return c.server.Logging
	}
	return mcp.Severity(level) >= mcp.Severity(wanted)
}

// repeats returns where the calls of the conversation wait for the same call again; nil: nowhere.
func (c *conversation) repeats() *again.Calls {
	switch {
	case c.capable != nil:
		return &c.kept
	case c.stranger != "":
		return &c.b.kept
	}
	return nil
}

// comesBack reports whether the same call can be made again and be known.
func (c *conversation) comesBack() bool { return c.repeats() != nil }

// Background implements again.Session.
func (c *conversation) Background(work func()) { c.b.background(work) }
