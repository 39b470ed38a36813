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
	if !q.call.Answered(caller, q.key, q.invites, msg) {
		return downstream.ErrNotHere
	}
	return nil
}

// Leave implements downstream.Conversation.
func (c *conversation) Leave() {
	for _, k := range c.underWay() {
		k.Leave()
	}
}

// Renew implements downstream.Conversation.
func (c *conversation) Renew() {
	for _, k := range c.underWay() {
		k.Refresh()
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
		c.Ended(req.ID)
		c.ReportLocal(&caller, req.Method, began, err)
		ends.Finish(out, req.ID, result, err)
		return
	}
	if missing := unnamed(&req); missing != "" {
		c.Ended(req.ID)
		err := fault.Params(missing + " is missing or no string")
		c.ReportLocal(&caller, req.Method, time.Now(), err)
		ends.Finish(out, req.ID, nil, err)
		return
	}
	began := time.Now()
	if repeated := c.Repeats().Rejoin(c.Stranger, c.Rules.Version, caller, &req, out); repeated != nil {
		c.Ended(req.ID)
		repeated.GoOn()
		return
	}
	if k := call.NewKept(&c.Party, caller, req, out); k.Cached(&req) {
		c.ReportLocal(&caller, req.Method, began, nil)
	} else {
		k.Start()
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
	return slices.ContainsFunc(c.calls, func(k *call.Call) bool { return k.GoesBy() == id })
}

// cancelled ends the call that the client gave the id, silently (D-T13), be it
// here or about to come. Some clients send every request with the same id: then
// it is unknowable which one is meant, and none is ended (B-1).
func (c *conversation) cancelled(caller downstream.Caller, id jsonrpc.ID) {
	c.mu.Lock()
	var meant *call.Call
	found := 0
	for _, k := range c.calls {
		if k.GoesBy() != id || k.Hosted() || !k.Of(caller) {
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
	calls := append([]*call.Call(nil), c.calls...)
	resources := c.resources
	c.mu.Unlock()

	last := mrtr.Cancelled() // D-T19
	if downstream.Audible(cause) {
		last = mrtr.Failed(cause)
	}
	for _, k := range calls {
		if !downstream.MayGoOn(cause) || !k.Leave() {
			k.Drive(last)
		}
	}
	if resources != nil {
		resources.Close()
	}
	c.b.listens.Leave(c, c.Principal)
	c.b.forget(c)
}
