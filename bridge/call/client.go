package call

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/flight"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Options are what all calls of a bridge share.
type Options struct {
	Upstream upstream.Caller
	Catalog  *catalog.Catalog
	Ask      *ask.Room // answers for clients that cannot be asked; nil: nobody does
	Replica  downstream.ReplicaID
	Shared   bool                       // other replicas may serve a client's next request
	Peers    bool                       // and hand what waits here of a session on
	Watch    observe.Watcher            // nil: nobody is told
	Alive    func()                     // the server has answered
	ListsAsk func() bool                // whether lists may ask, too (I-4); nil: never
	Hint     func(result []byte) string // what would make sense of a result that was refused (I-5); nil: nothing

	Flows       mrtr.Limits // of every flow
	Waiting     int         // how many flows of a session may wait; for the words only
	OneIdentity bool        // the server is told of no client's credentials
	ByToken     bool        // a principal's tokens have rights of their own
	Wait        time.Duration
	Patience    func(clientInfo []byte) time.Duration
	Stopping    func() bool // the same call cannot be made again any more; nil: never
	Log         zerolog.Logger
}

// Driver carries calls out: it is what all calls of a bridge have in common.
type Driver struct {
	Options
	notices notices
	serial  atomic.Uint64   // numbers calls, for progress tokens and log lines
	timers  sync.Pool       // of *timer, stopped
	working *gate.Gate      // work that belongs to no call any more
	ctx     context.Context // of those requests that are of no use once all calls are over
	stop    context.CancelFunc

	overdrafts *budget.Places // of retries whose sessions hold too much
}

// notices are the loggers for what clients and servers cause, one per kind, each with a
// rate of its own.
type notices struct {
	failed zerolog.Logger // calls
	queued zerolog.Logger // calls that wait for their turn
}

// NewDriver returns a Driver. Await it when its calls are over.
func NewDriver(opt Options) *Driver {
	d := &Driver{Options: opt, working: gate.New(), overdrafts: budget.NewPlaces(flight.Overdrafts), notices: notices{
		failed: logfield.AtMost(100, opt.Log), queued: logfield.AtMost(1, opt.Log),
	}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// Background runs work that belongs to no call any more, and that Await awaits. It reports
// false, and runs nothing, once that has begun.
func (d *Driver) Background(work func()) bool { return d.working.Go(work) }

// Await returns when no work is left that belongs to no call.
func (d *Driver) Await() {
	d.working.Shut()
	d.stop()
	_ = d.working.Wait(context.Background()) // which doesn't end
}

// Identity returns the principal that the server knows this one as.
func (d *Driver) Identity(principal string) string {
	if d.OneIdentity {
		return ""
	}
	return principal
}

// SeenAs returns to whom else what the server says to a caller may be told: to callers of
// the same name. A principal of a session that has had several tokens stands for each of them, which may have
// other rights (B-45).
func (d *Driver) SeenAs(caller *downstream.Caller) string {
	renewed := len(caller.Also) > 0 && !d.OneIdentity
	if (d.ByToken || renewed) && caller.Authorization != "" {
		sum := sha256.Sum256([]byte(caller.Authorization))
		return string(sum[:])
	}
	return d.Identity(caller.Principal)
}

// Client is whose calls they are: what never changes of a session once it serves, and
// the doors to what does.
type Client struct {
	*catalog.Declaration

	Driver    *Driver
	Session   Session
	Tables    Tables
	Rules     *translate.Rules // shared by all of its version
	Server    *catalog.Server
	Principal string            // as far as the server can tell clients apart
	Stranger  string            // the principal of a request without a session, to know its next one by
	Tenant    string            // whose turns those of its calls take that have no principal
	Account   *budget.Account   // of the session
	Transport observe.Transport // over which the client came
	Patience  time.Duration     // how long the client waits for a call; 0: for as long as it takes
}

// accountOf returns what is charged for what the client has a caller's calls hold.
func (c *Client) accountOf(caller *downstream.Caller) *budget.Account {
	if caller.Unproven {
		return caller.Account
	}
	return c.Account
}

// Session is what a call needs of the session that it is of: what is known of its
// client by now. All of it but Accepted may be called under the call's lock.
type Session interface {
	again.Session

	// Declares returns what a call tells the server of the client: its capabilities, and
	// the level of log messages that it wants; empty: none.
	Declares() (capabilities []byte, level string)
	// Level is that of logging/setLevel; empty: none asked for.
	Level() string
	// Accepted tells that the server has accepted a caller's credentials, and reports
	// whether the session is that caller's now (H-6).
	Accepted(caller downstream.Caller) bool
	// Trust notes that the client serves a kind of question; Distrust that it does not,
	// for so long; Distrusts reports whether it is not asked what needs a capability.
	Trust(k mcp.InputKind)
	Distrust(k mcp.InputKind, d time.Duration)
	Distrusts(capability string) bool
	// ShownWrapped notes which tools the client has been shown wrapped (Q10); WasShownWrapped reports whether this raw name is one's.
	ShownWrapped(names []string)
	WasShownWrapped(name []byte) bool
	// Visitors is the session as it is to calls of those who may know no more than its id
	// (Unproven): what these do counts neither for its client nor against it.
	Visitors() Session
	// Repeats returns where calls wait for the same call again; nil: nowhere.
	Repeats() *again.Replies
	// Owner names, for nobody to read, behind whom those stand whose its questions are.
	Owner() string
	// Spent counts what answering for the client has cost.
	Spent() *model.Spent
}

// Tables are where a session finds its calls again.
type Tables interface {
	// Enter registers a call, from its start until it Exits. The error, ErrCancelled or that its
	// session is over, says why it does not start.
	Enter(k *Call) error
	Exit(k *Call)
	// Ended notes that a request was answered that never became a registered call.
	Ended(id jsonrpc.ID)
	// Await registers a question under the id that its answer will have; invites says that
	// it asks the client to open the page where key is asked. Drop takes it out.
	Await(k *Call, id jsonrpc.ID, key string, invites bool)
	Drop(id jsonrpc.ID)
	// Suspend notes that a call waits, and returns the one that must make room for it, which
	// for an Unproven one is such a one; it is called under the call's lock;
	// Resumed that it does so no more.
	Suspend(k *Call) (evicted *Call)
	Resumed(k *Call)
}
