package bridge

import (
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// deliver answers the client with the completed result, translated straight
// into its message.
func (k ending) deliver(e *effect) {
	if k.slot != nil && k.flow.Round == 0 { // D-I10
		k.slot.Keep(e.result)
	}
	req := k.request()
	if err := k.conv.deliver(k.out, &req, e.result); err != nil {
		k.logLine(k.conv.b.notices.untranslated.Warn()).Str(logfield.Rule, "B-30").Err(err).Msg("the upstream's result cannot be translated")
		finish(k.out, req.ID, nil, fault.Internal(err.Error()))
	}
}

// cached answers a call from the catalogue, or begins to watch for its result.
func (k ending) cached(req *downstream.Request) bool {
	result, slot := k.conv.b.catalog.Lookup(k.conv.b.seenAs(k.caller.Principal), k.caller.Header, req, k.flow.Capabilities)
	k.slot = slot
	if watch := k.conv.b.opt.Watch; watch != nil && (slot != nil || result != nil) {
		watch.Cached(result != nil)
	}
	if result == nil {
		return false
	}
	k.conv.ended(req.ID)
	return k.conv.deliver(k.out, req, result) == nil
}

// deliver answers req with an upstream result. On an error nothing was sent.
func (c *conversation) deliver(out downstream.Reply, req *downstream.Request, result []byte) error {
	buf := borrow()
	defer giveBack(buf)
	head := jsonrpc.AppendResultHead((*buf)[:0], req.ID)
	text, err := c.appendResult(head, req, result)
	if err != nil {
		return err
	}
	msg := downstream.Result(req.ID, text[len(head):])
	*buf = append(text, '}')
	msg.Text = *buf
	out.Finish(msg)
	return nil
}

// appendResult appends what the client gets to see of an upstream result.
func (c *conversation) appendResult(dst []byte, req *downstream.Request, result []byte) ([]byte, error) {
	if mcp.IsList(req.Method) {
		return c.b.catalog.AppendList(dst, c.rules, c.principal, req, result)
	}
	rules := *c.rules
	if req.Method == mcp.MethodToolsCall {
		// A tool whose output schema was shown wrapped must have its structured
		// content wrapped, whatever its kind, so that it matches what the client
		// was told (Q10).
		rules.WrapOutput = c.b.catalog.Tool(c.principal, req.Name).Wrapped
	}
	return rules.AppendResult(dst, req.Method, result)
}

// request returns the client's request, as far as answering needs it.
func (k ending) request() downstream.Request {
	req := downstream.Request{Name: k.name}
	req.ID, req.Method, req.Params = k.flow.ID, k.flow.Method, k.flow.Params
	return req
}
