package call

import (
	"time"

	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
)

// NewResumable is New for a request that the call may outlive, where there is such a thing.
func NewResumable(c *Client, caller downstream.Caller, req downstream.Request, out downstream.Reply) *Call {
	if c.Driver.Ask == nil && c.Patience == 0 || !again.MayAsk(req.Method) {
		return New(c, caller, req, out)
	}
	p := again.New(again.Options{
		Session: c.Session, Calls: c.Session.Repeats(), Stranger: c.Stranger, Version: c.Rules.Version, Unproven: caller.Unproven, Account: c.accountOf(&caller),
		Wait: c.Driver.Wait, Life: c.Driver.Flows.Call, Patience: c.Patience,
		Astray: c.goesAstray(), Stopping: c.Driver.Stopping,
	}, req, out)
	k := New(c, caller, req, p)
	k.repeatable = p
	p.Bind(k)
	return k
}

// goesAstray reports whether the client may make a call again at a replica that knows nothing of it and does
// not hand it on, as none does without a session. A connection stays where it is.
func (c *Client) goesAstray() bool {
	return c.Driver.Shared && (c.Capable == nil || !c.Driver.Peers && c.Transport == observe.StreamableHTTP)
}

// New makes a call of a client's request. Start it.
func New(c *Client, caller downstream.Caller, req downstream.Request, out downstream.Reply) *Call {
	k := &Call{client: c, name: req.Name, http: caller.HTTP, caller: caller, out: out, link: req.Link, serial: c.Driver.serial.Add(1)}
	k.overhead.Choose(k.serial, c.Driver.Watch)
	k.held.Open(c.accountOf(&caller))
	k.flow = mrtr.Flow{
		ID: req.ID, Method: req.Method, Params: req.Params, Principal: caller.Principal, Limits: &c.Driver.Flows, Home: mrtr.Address{Session: caller.Session},
		ListsAsk: c.Driver.ListsAsk != nil && c.Driver.ListsAsk(), TasksDeclared: c.Server.Tasks && req.Method == mcp.MethodToolsCall,
	}
	k.flow.Capabilities, k.flow.Level = c.Session.Declares()
	if out.Interactive() {
		k.flow.Progress.Token = req.ProgressToken
	} else { // nothing can reach the client before the response
		k.flow.Capabilities, k.flow.Level = noCapabilities, ""
	}
	k.asking = asker{Call: k, declared: k.flow.Capabilities}
	k.saving = saving{Call: k, to: out.Checkpointer()}
	if room := c.Driver.Ask; room != nil {
		k.roots = room.Roots(caller.Header)
		k.flow.Capabilities = c.Driver.Catalog.Share(room.Capabilities(k.asking.declared, k.asking.reach()))
	}
	if k.flow.TasksDeclared {
		k.flow.Capabilities = translate.WithTasks(k.flow.Capabilities)
	}
	return k
}

// NewHosted is New for a call that runs as a task of its client.
func NewHosted(c *Client, caller downstream.Caller, req downstream.Request, t *tasks.Task) *Call {
	k := New(c, caller, req, t)
	k.task, k.apart = t, true
	return k
}

// Resume goes on with a call of another process, by its record.
func Resume(c *Client, caller downstream.Caller, record []byte, out downstream.Reply) error {
	flow, err := mrtr.Decode(record)
	if err != nil {
		return err
	}
	caller = actsFor(c, caller, flow)
	flow.Limits = &c.Driver.Flows
	k := &Call{client: c, flow: *flow, name: downstream.NameIn(flow.Method, flow.Params), http: caller.HTTP, caller: caller, out: out, serial: c.Driver.serial.Add(1), apart: true}
	k.asking = asker{Call: k}
	k.saving = saving{Call: k, to: out.Checkpointer(), saves: 1, told: flow.Progress.Last, unsent: flow.State != mrtr.Sending}
	if k.saving.to != nil {
		k.flow.Recall(func(id string) bool { return k.saving.to.Holds(jsonrpc.ID(id)) })
	}
	k.asking.declared, _ = c.Session.Declares()
	if room := c.Driver.Ask; room != nil {
		k.roots = room.Roots(caller.Header)
	}
	k.held.Resume(c.Account, k.Size())
	interrupted := k.saving.interrupted()
	if c.Tables.Enter(k) != nil {
		k.held.End()
		return downstream.ErrStopping
	}
	for _, in := range flow.Outstanding() {
		if id := jsonrpc.ID(in.ServerRequestID); id != "" {
			c.Tables.Await(k, id, in.Key, false)
		}
	}
	serverTask{k}.goOn(k.Drive)
	k.Resume(interrupted)
	return nil
}

// noCapabilities declares nothing.
var noCapabilities = []byte("{}")

// Cached answers a call from the catalogue, with an error where what is kept cannot be
// shown to this client, or begins to watch for its result. It reports whether the call is
// over. The server is asked once at most: it would say the same again.
func (k *Call) Cached(req *downstream.Request) (over bool, failed *jsonrpc.Error) {
	result, slot := k.client.Driver.Catalog.Lookup(k.client.Driver.SeenAs(&k.caller), k.caller.Header, req, k.flow.Capabilities)
	k.slot = slot
	if watch := k.client.Driver.Watch; watch != nil && (slot != nil || result != nil) {
		watch.Cached(result != nil)
	}
	if result == nil {
		return false, nil
	}
	k.client.Tables.Ended(req.ID)
	err := ending{k}.answerAtOnce(req, result)
	if err != nil {
		result, failed = ends.Explain(err, &ends.Facts{Method: req.Method, Params: req.Params, Rules: k.client.Rules, Capabilities: k.flow.Capabilities})
		ends.Finish(k.out, req.ID, result, failed)
	}
	return true, failed
}

// ID is that of the client's request.
func (k *Call) ID() jsonrpc.ID { return k.flow.ID }

// Hosted reports whether the call runs as a task of its client, whose own request is over.
func (k *Call) Hosted() bool { return k.task != nil }

// Answered takes the client's answer to a question under key; invites says that the
// question asked to open a page. It returns false when the answer is for another process, which goes on with
// the call.
func (k *Call) Answered(caller downstream.Caller, key string, invites bool, msg jsonrpc.Message) (taken bool) {
	if invites {
		k.asking.invited(key, &msg)
		return true
	}
	if k.task != nil {
		k.task.Answered(msg.ID)
	}
	if k.repeatable != nil {
		k.repeatable.Settled(string(msg.ID))
	}
	return k.asking.answered(caller, key, msg)
}

// Conclude ends a call that waits, and has one that is at the server end with its answer.
func (k *Call) Conclude() {
	k.mu.Lock()
	k.concluded = true
	waits, cause := k.flow.State != mrtr.Sending, k.causeLocked(downstream.ErrOutdated)
	k.mu.Unlock()
	if waits {
		k.Drive(mrtr.Failed(cause))
	}
}

// Remind puts a question to the client again, under its id: it left, and was lost before the client
// got it. A task shows its questions by itself.
func (k *Call) Remind(key string) {
	defer k.asking.survive()
	k.mu.Lock()
	if k.task == nil {
		k.asking.remindLocked(key)
	}
	claimed := k.outbox.claimLocked()
	k.mu.Unlock()
	speaker{k}.carryOut(claimed)
}

// Leave leaves a call that waits for its client, and is kept, to another process. It
// reports whether it has.
func (k *Call) Leave() bool { return k.saving.waitsElsewhere() }

// Abandon leaves a call that is at the server, is kept, and may be done twice to another process, as if this one
// had been killed. It reports whether it has.
func (k *Call) Abandon() bool { return k.saving.repeatsElsewhere() }

// Close ends a call with its session: in silence, where its client wanted that or is gone. Of one that is at the
// server nobody knows what became of it.
func (k *Call) Close(cause error) {
	if !downstream.Audible(cause) {
		k.Drive(mrtr.Cancelled())
		return
	}
	k.mu.Lock()
	cause = k.causeLocked(cause)
	k.mu.Unlock()
	k.Drive(mrtr.Failed(cause))
}

// Refresh makes sure of a call that is kept: another process may have taken it over.
func (k *Call) Refresh() { k.saving.refresh() }

// Unload leaves a call that does nothing but wait for its client to the store, if it may.
func (k *Call) Unload(may func(downstream.Checkpointer, time.Time) bool) {
	if due, ok := k.saving.idleUntil(); ok && may(k.saving.to, due) {
		k.saving.unload()
	}
}

// Record returns what another process needs to go on with the call; nil when it is
// over, has yet to start or is a task, which lives with its handle.
func (k *Call) Record() []byte { return k.saving.record() }

// Sight describes the call as it stands; alive is false when it has ended. served has
// the kinds of questions that its client has answered, a bit each.
func (k *Call) Sight(served mcp.InputKindSet) (flow observe.Flow, alive bool) {
	return reporter{k}.sight(served)
}

// Start registers the call, for a cancellation to find, and makes its requests. It
// returns when the call is over or waits.
func (k *Call) Start() {
	switch err := k.client.Tables.Enter(k); err {
	case nil:
		k.Drive(mrtr.Started())
	case downstream.ErrCancelled: // over before it began
		k.client.ReportEnd(&k.caller, k.flow.Method, time.Now(), observe.CallEnd{End: observe.Cancelled, Cause: "client"})
		k.Reply().Abandon()
	default:
		k.Drive(mrtr.Failed(err))
	}
}

// Renew notes the newest credentials of the principal (H-2).
func (k *Call) Renew(caller downstream.Caller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	bearer{k}.actsLocked(caller)
}

// Reauthorize notes newer credentials of the session's owner, if the call was made with such of his, be it
// with those by which he became that (H-2).
func (k *Call) Reauthorize(authorization string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if caller := k.caller; !caller.Unproven && caller.Authorization != "" {
		caller.Authorization = authorization
		bearer{k}.actsLocked(caller)
	}
}

// small is an answer that is taken in any case: it may be the one that ends what its session
// holds, and of 64 in a round nobody notices.
const small = 1 << 10

// Keep charges an answer to the question under key, before it is taken, for as long as the call
// has it; paid is what its message is charged to. While other questions of the round are open, or
// nobody waits for the call, it is refused when the session holds too much, or has too much in the store: then
// the question stays open. The last one never is, for it ends what the call holds.
func (k *Call) Keep(key string, answer []byte, paid *budget.Hold) error {
	open, stays, saved := k.takes(key)
	if !open || len(answer) == 0 {
		return nil
	}
	must := !stays || len(answer) <= small
	grows := saved && !must
	if grows {
		if err := k.saving.to.Grow(len(answer)); err != nil {
			return err
		}
	}
	err := k.held.Keep(len(answer), paid, must)
	if err != nil && grows {
		_ = k.saving.to.Grow(-len(answer)) // which it comes for once more
	}
	return err
}

// takes reports whether the question under key is open, and whether an answer to it stays with the call, and is saved.
func (k *Call) takes(key string) (open, stays, saved bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	in := k.flow.Input(key)
	open = in != nil && in.Response == nil
	stays = k.flow.Awaits(key) || k.repeatable != nil && !k.repeatable.Waits()
	return open, stays, k.saving.saves > 0
}

// Detach implements again.Flow.
func (k *Call) Detach(leave func() (first bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if asks := k.flow.State == mrtr.Gathering || k.flow.State == mrtr.Polling; asks && leave() {
		_ = k.held.Keep(len(k.flow.Params), nil, true)
	}
}

// Outlives implements again.Flow.
func (k *Call) Outlives() { _ = k.held.Keep(len(k.flow.Params), nil, true) }
