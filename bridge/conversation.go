package bridge

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// conversation is one client's session as the bridge sees it; it implements
// downstream.Conversation. There may be tens of thousands, so what most of them
// never use is made on first use.
type conversation struct {
	b *Bridge
	call.Client
	push downstream.Pusher // nil: it is no session

	table   table       // of its calls
	breaker breaker     // of what its client does not serve
	spent   model.Spent // sampling requests answered elsewhere
	visits  model.Spent // those of visitors

	mu        sync.Mutex
	announced bool // initialized came, or a request that implies it
	closed    bool
	rest      *seldom // nil until there is something of it
	// authorization is the newest of whoever proved that the session is his, for work that
	// nobody in particular caused (H-2).
	authorization string
}

// seldom is what few sessions have anything of.
type seldom struct {
	level     string                   // of logging/setLevel; empty: none asked for
	unheard   string                   // who was refused a listen for it; empty: nobody
	nobody    string                   // the owner of its questions, when no principal is; empty until needed
	resources *subscriptions.Resources // nil until the first resources/subscribe
	replies   *again.Replies           // that wait for the same call again; nil until one may
	wrapped   []string                 // tools that it was shown wrapped, in order
	tasks     *tasks.Set               // that the bridge hosts for the client (mode 2); nil until the first one
}

// seldomLocked returns what there is of it, to be read.
func (c *conversation) seldomLocked() seldom {
	if c.rest == nil {
		return seldom{}
	}
	return *c.rest
}

// restLocked returns it to be written to.
func (c *conversation) restLocked() *seldom {
	if c.rest == nil {
		c.rest = new(seldom)
	}
	return c.rest
}

// declare keeps what the client says of itself, as raw JSON.
func (c *conversation) declare(clientInfo, capabilities []byte) {
	c.Declaration = c.Driver.Catalog.Declare(c.Rules.Version, clientInfo, capabilities)
	if c.Driver.Patience != nil && c.ClientInfo != nil {
		c.Patience = c.Driver.Patience(c.ClientInfo)
	}
}

// Orderly implements downstream.Conversation: calls run side by side.
func (c *conversation) Orderly() bool { return false }

// Version implements downstream.Conversation.
func (c *conversation) Version() mcp.Version { return c.Rules.Version }

// Declares implements call.Session: it returns what a call tells the server of the client: its capabilities, and
// the level of log messages that it wants; empty: none.
func (c *conversation) Declares() (capabilities []byte, level string) {
	if c.Server.Logging {
		level = c.Level()
	}
	return c.effective(), level
}

// effective returns what to declare upstream now: what the client declared, less what is
// switched off.
func (c *conversation) effective() []byte {
	if c.Capable == nil {
		return emptyObject
	}
	return c.breaker.less(c.Capable)
}

// reaches reports whether the client gets what no request of its own asked for.
func (c *conversation) reaches() bool { return downstream.Reaches(c.push) }

// Accepted implements call.Session.
func (c *conversation) Accepted(caller downstream.Caller) bool {
	return c.push != nil && c.push.Accepted(caller) // which tells Reauthorize
}

// Trust implements call.Session, and tells who keeps the session, once: when it is brought back, its client has
// answered still.
func (c *conversation) Trust(k mcp.InputKind) {
	if c.breaker.trust(k) && c.push != nil {
		c.Driver.Background(c.changed)
	}
}

// Distrusts implements call.Session.
func (c *conversation) Distrusts(capability string) bool { return c.breaker.distrusts(capability) }

// Distrust implements call.Session, and tells who watches and who keeps the session.
func (c *conversation) Distrust(k mcp.InputKind, d time.Duration) {
	if !c.breaker.distrust(k, d) {
		return
	}
	c.Driver.Background(c.changed)
	if c.Driver.Watch != nil {
		c.Driver.Watch.Distrusted(observe.KindOf(k.Method(), ""))
	}
	c.b.log.Warn().Str("capability", k.Capability()).
		Msg("the client does not serve a capability that it declared; it is not asked again for now")
}

// Level implements call.Session.
func (c *conversation) Level() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seldomLocked().level
}

// setLevelLocked keeps the level of log messages that the client wants.
func (c *conversation) setLevelLocked(level string) {
	if level != c.seldomLocked().level {
		c.restLocked().level = level
	}
}

// ShownWrapped implements call.Session.
func (c *conversation) ShownWrapped(names []string) {
	c.mu.Lock()
	news := !slices.Equal(c.seldomLocked().wrapped, names)
	if news {
		c.restLocked().wrapped = names
	}
	c.mu.Unlock()
	if news {
		c.changed()
	}
}

// rememberWrappedLocked takes over what another process has shown the client.
func (c *conversation) rememberWrappedLocked(names []string) {
	if !slices.Equal(c.seldomLocked().wrapped, names) {
		c.restLocked().wrapped = names
		c.Driver.Catalog.WrapsElsewhere()
	}
}

// WasShownWrapped implements call.Session.
func (c *conversation) WasShownWrapped(raw []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrapped := c.seldomLocked().wrapped
	if len(wrapped) == 0 {
		return false
	}
	name, _ := rawjson.Name(raw)
	_, found := slices.BinarySearch(wrapped, name)
	return found
}

// hosted returns the tasks that the bridge hosts for the client; nil, which is empty: none yet.
func (c *conversation) hosted() *tasks.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seldomLocked().tasks
}

// changed tells who keeps the conversation that its record is another now.
func (c *conversation) changed() {
	if c.push != nil {
		c.push.Changed()
	}
}

// Owner implements call.Session: it names, for nobody to read, behind whom those stand whose
// questions the conversation's are.
func (c *conversation) Owner() string {
	if c.Principal != "" || c.Stranger != "" {
		return cmp.Or(c.Principal, c.Stranger)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.restLocked()
	if rest.nobody == "" {
		rest.nobody = rand.Text()
	}
	return rest.nobody
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

// Repeats implements call.Session: it returns where the calls of the conversation wait for the same
// call again; nil: nowhere.
func (c *conversation) Repeats() *again.Replies {
	if c.Capable == nil {
		return c.waiting()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.restLocked()
	if rest.replies == nil {
		rest.replies = new(again.Replies)
		if !c.closed { // else no outcome is kept any more
			rest.replies.Limit(c.b.limits.FlowsPerSession)
		}
	}
	return rest.replies
}

// replies returns the session's calls that may wait for the same call again; nil, which is none: none may yet.
func (c *conversation) replies() *again.Replies {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seldomLocked().replies
}

// waiting is Repeats for who only looks: nil, where none has waited yet, has none.
func (c *conversation) waiting() *again.Replies {
	switch {
	case c.Capable != nil:
		return c.replies()
	case c.Stranger != "":
		return c.b.replies
	}
	return nil
}

// Detached implements again.Session.
func (c *conversation) Detached(req *downstream.Request, person string) {
	if c.push != nil {
		c.push.Detached(downstream.Likeness(&req.Message, person), time.Now().Add(c.Driver.Flows.Call))
	}
}

// Background implements again.Session.
func (c *conversation) Background(work func()) { c.Driver.Background(work) }

// Spent implements call.Session.
func (c *conversation) Spent() *model.Spent { return &c.spent }

// Visitors implements call.Session.
func (c *conversation) Visitors() call.Session { return visiting{c} }
