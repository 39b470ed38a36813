package bridge

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
)

// conversation is one client's session as the bridge sees it; it implements
// downstream.Conversation. There may be tens of thousands, so what most of them
// never use is made on first use.
type conversation struct {
	b *Bridge
	call.Party
	push          downstream.Pusher // nil: no channel for unrelated messages
	authorization string            // of the initialize request, for work that nobody in particular caused (H-2)
	declared      []byte            // capabilities as the client declared them

	kept  again.Calls // that wait for the same call again
	tasks tasks.Set   // that the bridge hosts for the client (mode 2)

	mu        sync.Mutex
	breaker   *breaker // nil while nothing is switched off
	level     string   // of logging/setLevel; empty: none asked for
	served    uint8    // which kinds the client has answered, a bit each
	announced bool     // initialized came, or a request that implies it
	closed    bool
	calls     []*call.Call
	early     earlyCancels
	questions questions
	suspended mrtr.Suspended[*call.Call]
	resources *subscriptions.Resources // nil until the first resources/subscribe
	spent     model.Spent              // sampling requests answered elsewhere
	nobody    string                   // the owner of its questions, when no principal is; empty until needed
}

func (b *Bridge) newConversation(version mcp.Version, caller downstream.Caller, srv *catalog.Server, push downstream.Pusher) *conversation {
	c := &conversation{
		b: b,
		Party: call.Party{
			Driver:    b.driver,
			Rules:     b.rules(version),
			Server:    srv,
			Principal: b.driver.SeenAs(caller.Principal),
			Account:   caller.Account,
			Transport: caller.Transport,
		},
		push:          push,
		authorization: caller.Authorization,
		suspended:     mrtr.NewSuspended[*call.Call](b.limits.FlowsPerSession),
	}
	c.Session = c
	return c
}

// declare keeps what the client says of itself, as raw JSON: sessions share it, since
// thousands of clients of one kind say the same. As far as the revision's
// capabilities exist in 2026-07-28, they are mirrored (A.5).
func (c *conversation) declare(clientInfo, capabilities []byte) {
	c.ClientInfo = c.Driver.Catalog.Share(clientInfo)
	c.declared = c.Driver.Catalog.Share(capabilities)
	c.Capable = c.declared // one copy of what most clients declare
	if caps := translate.ClientCapabilities(c.Rules.Version, capabilities, true); !bytes.Equal(caps, c.declared) {
		c.Capable = c.Driver.Catalog.Share(caps)
	}
}

// Orderly implements downstream.Conversation: calls run side by side.
func (c *conversation) Orderly() bool { return false }

// Version implements downstream.Conversation.
func (c *conversation) Version() mcp.Version { return c.Rules.Version }

// Declares implements call.Session: it returns what a call tells the server of the client: its capabilities, and
// the level of log messages that it wants; empty: none.
func (c *conversation) Declares() (capabilities []byte, level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Server.Logging {
		level = c.level
	}
	return c.capabilitiesLocked(), level
}

func (c *conversation) Level() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// Ended implements call.Session: it notes that a request was answered that never became a registered call.
func (c *conversation) Ended(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early.ended(id)
}

// Enter implements call.Session: it registers a call; false means that the session is over, or that the call
// was cancelled already.
func (c *conversation) Enter(k *call.Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !k.Hosted() && c.early.take(k) {
		return false
	}
	c.calls = append(c.calls, k)
	return true
}

// Exit implements call.Session: it takes a call out of the tables. It is idempotent.
func (c *conversation) Exit(k *call.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls {
		if c.calls[i] == k {
			last := len(c.calls) - 1
			c.calls[i], c.calls[last] = c.calls[last], nil
			c.calls = c.calls[:last]
			c.early.ended(k.ID())
			break
		}
	}
	c.suspended.Remove(k)
}

// Await implements call.Session: it registers a question, so that its answer is recognised.
func (c *conversation) Await(k *call.Call, id jsonrpc.ID, key string, invites bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.add(id, key, k, invites)
}

func (c *conversation) Drop(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.remove(id)
}

// Suspend implements call.Session: it puts a call into the LRU, and returns the one that must make room for it.
func (c *conversation) Suspend(k *call.Call) (evicted *call.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest, full := c.suspended.Add(k)
	if full && oldest != k {
		return oldest
	}
	return nil
}

func (c *conversation) Resumed(k *call.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended.Remove(k)
}

func (c *conversation) underWay() []*call.Call {
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

// Owner implements call.Session: it names, for nobody to read, whose questions the conversation's are.
func (c *conversation) Owner() string {
	if c.Principal != "" || c.Stranger != "" {
		return cmp.Or(c.Principal, c.Stranger)
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

// Hears implements again.Session: it reports whether a log message of a level is for the client: where it named no
// level, the server's own choice is left to the server (2025-11-25, logging).
func (c *conversation) Hears(level string) bool {
	wanted := c.Level()
	if wanted == "" {
		return c.Server.Logging
	}
	return mcp.Severity(level) >= mcp.Severity(wanted)
}

// Repeats implements call.Session: it returns where the calls of the conversation wait for the same call again; nil: nowhere.
func (c *conversation) Repeats() *again.Calls {
	switch {
	case c.Capable != nil:
		return &c.kept
	case c.Stranger != "":
		return &c.b.kept
	}
	return nil
}

// Background implements again.Session.
func (c *conversation) Background(work func()) { c.Driver.Background(work) }

// Spent implements call.Session.
func (c *conversation) Spent() *model.Spent { return &c.spent }
