package bridge

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// Answer implements downstream.Conversation. Late, duplicate and foreign answers
// find no question and are ignored (C.9).
func (c *conversation) Answer(caller downstream.Caller, msg jsonrpc.Message) error {
	q := c.table.asked(caller, msg.ID)
	if q == nil {
		return downstream.ErrNotHere
	}
	if !q.invites {
		if err := q.call.Keep(q.key, msg.Result, caller.Paid); err != nil {
			return err
		}
	}
	if !c.table.answered(msg.ID) {
		return downstream.ErrNotHere // by another message, just now
	}
	if !q.call.Answered(caller, q.key, q.invites, msg) {
		return downstream.ErrNotHere
	}
	return nil
}

// Remind implements downstream.Conversation.
func (c *conversation) Remind(questions []string) {
	c.Driver.Background(func() {
		for _, id := range questions {
			if q := c.table.question(jsonrpc.ID(id)); q != nil && !q.invites {
				q.call.Remind(q.key)
			}
		}
	})
}

// Leave implements downstream.Conversation.
func (c *conversation) Leave() {
	for _, k := range c.table.underWay() {
		k.Leave()
	}
}

// Renew implements downstream.Conversation.
func (c *conversation) Renew() {
	for _, k := range c.table.underWay() {
		k.Refresh()
	}
}

// Awaits implements downstream.Conversation.
func (c *conversation) Awaits(msg jsonrpc.Message) bool {
	calls := c.replies()
	if calls.Len() == 0 {
		return false
	}
	req := downstream.NewRequest(msg)
	return calls.Awaits(c.Rules.Version, &req)
}

// StopListening implements downstream.Conversation.
func (c *conversation) StopListening() { hearing{c}.stop() }

// Reauthorize implements downstream.Conversation.
func (c *conversation) Reauthorize(authorization string) { hearing{c}.renew(authorization) }

// Serve implements downstream.Conversation.
func (c *conversation) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if req.Method != mcp.MethodPing {
		hearing{c}.announce(caller)
	}
	if err := fault.Token(req.ProgressToken); err != nil {
		c.finishLocal(&caller, &req, out, time.Now(), nil, err)
		return
	}
	if tasked := (hosting{c}); tasked.host(caller, req, out) || tasked.serveTasksResult(caller, &req, out) {
		return
	}
	if serve, ok := localMethods[req.Method]; ok {
		began := time.Now()
		result, err := serve(c, ctx, caller, req)
		c.finishLocal(&caller, &req, out, began, result, err)
		return
	}
	if missing := unnamed(&req); missing != "" {
		c.finishLocal(&caller, &req, out, time.Now(), nil, fault.Params(missing+" is missing or no string"))
		return
	}
	began := time.Now()
	if repeated := c.waiting().Rejoin(c.Stranger, c.Rules.Version, caller, &req, out); repeated != nil {
		c.table.Ended(req.ID)
		req.Link.Pass() // it has begun long ago
		repeated.GoOn()
		return
	}
	k := call.NewResumable(&c.Client, caller, req, out)
	if over, failed := k.Cached(&req); over {
		c.ReportLocal(&caller, req.Method, began, failed)
		return
	}
	k.Start()
}

// finishLocal answers a request for which the server is not asked.
func (c *conversation) finishLocal(caller *downstream.Caller, req *downstream.Request, out downstream.Reply, began time.Time, result []byte, err *jsonrpc.Error) {
	c.table.Ended(req.ID)
	c.ReportLocal(caller, req.Method, began, err)
	ends.Finish(out, req.ID, result, err)
}

// unnamed returns the member that must name what req is about and does not. The
// upstream would refuse the request too, but for a header that legacy clients
// know nothing of (B.2).
func unnamed(req *downstream.Request) string {
	switch {
	case mcp.HasName(req.Method) && req.Name == nil:
		return "name"
	case req.Method == mcp.MethodResourcesRead && req.URI == nil:
		return "uri"
	}
	return ""
}

// Notify implements downstream.Conversation. No client notification exists in
// 2026-07-28 over HTTP, so each is used up here (P-5).
func (c *conversation) Notify(caller downstream.Caller, msg jsonrpc.Message) {
	switch msg.Method {
	case mcp.NotificationInitialized:
		hearing{c}.announce(caller)
	case mcp.NotificationCancelled:
		c.cancelled(caller, jsonrpc.ID(rawjson.Get(msg.Params, "requestId")))
	}
}

// Knows implements downstream.Conversation.
func (c *conversation) Knows(caller downstream.Caller, id jsonrpc.ID) bool {
	return c.table.knows(caller, id) || !caller.Unproven && c.hosted().Waits(id)
}

// Owns implements downstream.Conversation. Whose a record is that cannot be read is for its session's
// owner to find out.
func (c *conversation) Owns(caller downstream.Caller, record []byte) bool {
	flow, err := mrtr.Decode(record)
	return err == nil && caller.Owns(flow.Principal) || err != nil && !caller.Unproven
}

// cancelled ends the call that the client gave the id, silently (D-T13), be it
// here or about to come.
func (c *conversation) cancelled(caller downstream.Caller, id jsonrpc.ID) {
	hosted := c.hosted()
	meant, found := c.table.meant(caller, id, hosted.Empty()) // else it may mean a tasks/result
	switch {
	case meant != nil:
		meant.Drive(mrtr.Cancelled())
		return
	case found > 1:
		c.b.log.Debug().Int("calls", found).Msg("a cancellation names an id that several requests have; none is cancelled")
	}
	if !caller.Unproven { // who cannot have asked for a task's result
		hosted.Leave(id)
	}
	c.replies().Cancelled(caller, id)
}

// Conclude implements downstream.Conversation.
func (c *conversation) Conclude() {
	for _, k := range c.table.close(downstream.ErrOutdated) {
		k.Conclude()
	}
}

// Close implements downstream.Conversation: it ends every flow, and stops listening.
func (c *conversation) Close(cause error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	resources := c.seldomLocked().resources
	c.mu.Unlock()

	cause = downstream.EndOfCalls(cause, cause)
	late := downstream.ErrCancelled // D-T19
	if downstream.Audible(cause) {
		late = cause
	}
	for _, k := range c.table.close(late) {
		if !downstream.MayGoOn(cause) || !k.Leave() && !k.Abandon() {
			k.Close(cause)
		}
	}
	c.replies().Shut()
	if resources != nil {
		resources.Close()
	}
	c.b.listens.Leave(hearing{c}, c.Principal)
	c.b.catalog.Leave(c.Server)
	c.b.forget(c)
}

// Unload implements downstream.Conversation. A call that waits for its client is data and a
// timer. Kept, it need not be in memory either: the transport, which knows who
// listens, leaves it to the store, and brings it back for an answer, a cancellation, or
// when something is due.
func (c *conversation) Unload(may func(downstream.Checkpointer, time.Time) bool) bool {
	for _, k := range c.table.underWay() {
		k.Unload(may)
	}
	return c.empty()
}

// empty reports whether all there is to know of the conversation is in its record.
func (c *conversation) empty() bool {
	return len(c.table.underWay()) == 0 && c.replies().Len() == 0 && c.hosted().Empty() && c.spent.None() && c.visits.None()
}

// Watch implements downstream.Conversation.
func (c *conversation) Watch(see func(observe.Flow, downstream.Reply) downstream.Reply) {
	served := c.breaker.proven()
	for _, k := range c.table.underWay() {
		k.Watch(served, see)
	}
}

// EndCall implements downstream.Conversation.
func (c *conversation) EndCall(id string) bool {
	calls := c.table.underWay()
	at := slices.IndexFunc(calls, func(k *call.Call) bool { return k.Name() == id })
	if at >= 0 {
		calls[at].Close(downstream.ErrCallEnded)
	}
	return at >= 0
}

// Look implements downstream.Conversation.
func (c *conversation) Look() observe.Conversation {
	seen := observe.Conversation{
		Version: c.Rules.Version, ClientInfo: c.ClientInfo, Declared: c.Declared,
		Effective: c.effective(), Distrusted: c.breaker.names(),
	}
	served := c.breaker.proven()
	for _, k := range c.table.underWay() {
		if flow, alive := k.Sight(served); alive {
			seen.Flows = append(seen.Flows, flow)
		}
	}
	return seen
}
