package bridge

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

// Answer implements downstream.Conversation. Late, duplicate and foreign answers
// find no question and are ignored (C.9).
func (c *conversation) Answer(caller downstream.Caller, msg jsonrpc.Message) error {
	c.mu.Lock()
	q := c.questions.find(msg.ID)
	ok := q != nil && q.call.Of(caller)
	if ok {
		c.questions.remove(msg.ID)
	}
	c.mu.Unlock()
	if !ok {
		return downstream.ErrNotHere
	}
	if q.invites {
		q.call.asking.invited(q.key, &msg)
		return nil
	}
	if q.call.task != nil {
		q.call.task.Answered(msg.ID)
	}
	if q.call.kept != nil {
		q.call.kept.Settled(string(msg.ID))
	}
	if !q.call.asking.answered(caller, q.key, msg) {
		return downstream.ErrNotHere
	}
	return nil
}

// Leave implements downstream.Conversation.
func (c *conversation) Leave() {
	for _, k := range c.underWay() {
		k.saving.waitsElsewhere()
	}
}

// Renew implements downstream.Conversation.
func (c *conversation) Renew() {
	for _, k := range c.underWay() {
		k.mu.Lock()
		var kept *downstream.Kept
		if k.saving.waitsKeptLocked() {
			kept = k.saving.encodeLocked()
		}
		k.mu.Unlock()
		if kept != nil {
			k.saving.keep(kept)
		}
	}
}

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
		c.reportLocal(&caller, req.Method, began, err)
		finish(out, req.ID, result, err)
		return
	}
	if missing := unnamed(&req); missing != "" {
		c.ended(req.ID)
		err := fault.Params(missing + " is missing or no string")
		c.reportLocal(&caller, req.Method, time.Now(), err)
		finish(out, req.ID, nil, err)
		return
	}
	began := time.Now()
	if repeated := c.repeats().Rejoin(c.stranger, c.rules.Version, caller, &req, out); repeated != nil {
		c.ended(req.ID)
		repeated.GoOn()
		return
	}
	if k := c.newKeptCall(caller, req, out); (ending{k}).cached(&req) {
		c.reportLocal(&caller, req.Method, began, nil)
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
	return slices.ContainsFunc(c.calls, func(k *call) bool { return k.goesBy() == id })
}

// cancelled ends the call that the client gave the id, silently (D-T13), be it
// here or about to come. Some clients send every request with the same id: then
// it is unknowable which one is meant, and none is ended (B-1).
func (c *conversation) cancelled(caller downstream.Caller, id jsonrpc.ID) {
	c.mu.Lock()
	var meant *call
	found := 0
	for _, k := range c.calls {
		if k.goesBy() != id || k.task != nil || !k.Of(caller) {
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
		meant.Drive(mrtr.Cancelled())
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
			k.Drive(last)
		}
	}
	if resources != nil {
		resources.Close()
	}
	c.b.listens.Leave(c, c.principal)
	c.b.forget(c)
}
