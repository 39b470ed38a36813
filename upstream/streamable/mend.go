package streamable

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/mirror"
)

// sink is where a call's interim messages go.
type sink struct {
	notify func(jsonrpc.Message)
	idle   func() // of the Call
	// listen: the stream is a subscription, whose messages name it (C-18).
	listen bool
}

// mends counts what was already tried for one call, so that each remedy is
// used once.
type mends struct{ version, headers, name, busy bool }

// run sends a call and, as long as the server refuses it before execution for
// a reason that can be mended, sends it again.
func (c *Client) run(ctx context.Context, call *upstream.Call, to sink) (*upstream.Answer, error) {
	if f := upstream.Interrupted(ctx, false); f != nil {
		return nil, f
	}
	if c.ctx.Err() != nil {
		return nil, &upstream.Failure{Cause: upstream.Canceled, Err: c.ctx.Err(), Detail: "the upstream client is closed"}
	}
	req := prepare(call)
	defer req.release()
	req.rawName = c.rawNames.Load()
	if refused := c.mirror(req); refused != nil {
		return &upstream.Answer{Error: refused}, nil
	}
	done := mends{version: call.AsIs}
	for {
		ans, err := c.send(ctx, req, to)
		again := false
		if err != nil {
			again = c.awaitRetry(ctx, req, err, &done)
		} else if ans.Error != nil {
			again, ans = c.mend(ctx, req, ans, &done)
		}
		if !again {
			if done.name && err == nil && !rejectedHeaders(ans) {
				c.rawNames.Store(req.rawName)
			}
			return ans, err
		}
	}
}

// audience is who gets to see the tools that a call is about, which is who knows them (H-10).
func audience(call *upstream.Call) string { return hop.Audience(call.Principal, call.Header) }

// mirror computes the headers that repeat the body.
func (c *Client) mirror(req *request) *jsonrpc.Error {
	if req.call.Method == mcp.MethodToolsCall && req.named && c.tools.May(req.name) {
		if e := req.applyPlan(c.tools.Plan(audience(req.call), req.name)); e != nil {
			return e
		}
	}
	return req.check()
}

func rejectedHeaders(ans *upstream.Answer) bool {
	return ans.Error != nil && ans.Error.Code == mcp.CodeHeaderMismatch
}

// mend looks at a refusal and prepares req to be sent again, if that can help.
// The answer is replaced when the tool turned out to be uncallable.
func (c *Client) mend(ctx context.Context, req *request, ans *upstream.Answer, done *mends) (bool, *upstream.Answer) {
	refused := ans.Refused // else a tool said so of its own accord, and has run (B-25)
	switch ans.Error.Code {
	case mcp.CodeUnsupportedVersion:
		return (refused || upstream.ReadOnly(req.call.Method)) && c.mendVersion(req, ans.Error, done), ans
	case mcp.CodeHeaderMismatch:
		if refused {
			again, ans := c.mendHeaders(ctx, req, ans, done)
			if rejectedHeaders(ans) && !again && req.named && !mirror.Plain(req.name) && !mirror.LegalRaw(req.name) {
				return false, &upstream.Answer{Error: undecoded(req)}
			}
			return again, ans
		}
	}
	return false, ans
}

// mendVersion chooses a mutual version after -32022 (E-39). A server may name
// the very version that was sent; then it is simply sent again.
func (c *Client) mendVersion(req *request, e *jsonrpc.Error, done *mends) bool {
	if done.version {
		return false
	}
	done.version = true
	version := upstream.Mutual(c.opt.Fallback, e, string(mcp.V20260728))
	if version != "" {
		c.repeats(observe.OtherVersion)
		req.redeclare(version)
	}
	return version != ""
}

// mendHeaders reacts to -32020: it refreshes the schemas and sends once more
// (B-25), and sends Mcp-Name in its other form to servers that compare it
// without decoding. The refused attempt was not executed.
func (c *Client) mendHeaders(ctx context.Context, req *request, ans *upstream.Answer, done *mends) (bool, *upstream.Answer) {
	flippable := req.named && !done.name && mirror.LegalRaw(req.name) && !mirror.Plain(req.name)
	if req.call.Method == mcp.MethodToolsCall && req.named && !done.headers {
		done.headers = true
		before := fmt.Sprint(req.custom)
		if err := c.refreshTools(ctx, req); err != nil {
			c.opt.Log.Warn().Err(err).Msg("tools/list after a header mismatch failed")
			return c.flipName(req, flippable, done), ans
		}
		if refused := c.mirror(req); refused != nil {
			return false, &upstream.Answer{Error: refused}
		}
		if !flippable || before != fmt.Sprint(req.custom) {
			c.repeats(observe.HeaderMismatch)
			return true, ans
		}
	}
	return c.flipName(req, flippable, done), ans
}

// undecoded words the refusal of a name that can only travel encoded, by a server
// that compares Mcp-Name without decoding it: to clients the header means nothing.
func undecoded(req *request) *jsonrpc.Error {
	return refuse(jsonrpc.CodeInvalidParams, "name_characters", fmt.Sprintf(
		"the upstream server does not take %q: such characters reach it in an encoded form that it refuses", upstream.Clip(string(req.name))))
}

func (c *Client) flipName(req *request, can bool, done *mends) bool {
	if can {
		c.repeats(observe.RawName)
		req.rawName = !req.rawName
		done.name = true
	}
	return can
}

// repeats tells who wants to know that a request is sent again.
func (c *Client) repeats(why observe.Repeat) {
	if c.opt.Repeated != nil {
		c.opt.Repeated(why)
	}
}

// refreshTimeout bounds one refresh of all pages.
const refreshTimeout = 30 * time.Second

// refreshTools reads tools/list to its last page into the store. Calls of one
// audience that need it at the same time share one refresh, which outlives
// the call that started it.
func (c *Client) refreshTools(ctx context.Context, req *request) error {
	call := *req.call
	call.Method, call.Idle, call.About = mcp.MethodToolsList, nil, upstream.About{}
	meta := rawjson.Apply(nil, req.meta(), rawjson.Edit{Name: "progressToken"}) // a copy: params are only lent
	key := audience(&call) + "\x00" + call.Authorization
	done := c.refresh.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		return nil, c.listTools(ctx, call, meta)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) listTools(ctx context.Context, call upstream.Call, meta []byte) error {
	held := budget.On(c.opt.Account) // not of the call that came first, which may end before
	defer held.Release()
	call.Held = &held
	ask := func(params []byte) (*upstream.Answer, error) {
		call.Params = params
		req := prepare(&call)
		defer req.release()
		return c.send(ctx, req, sink{})
	}
	return upstream.EachPage(meta, ask, func(page *upstream.Answer) error {
		return c.learn(&call, page)
	})
}

// awaitRetry waits as long as a busy server asked, once, for a call that may
// be repeated (E-41). It reports whether to send again.
func (c *Client) awaitRetry(ctx context.Context, req *request, err error, done *mends) bool {
	f, ok := err.(*upstream.Failure)
	if !ok || f.Cause != upstream.Busy || done.busy || !upstream.ReadOnly(req.call.Method) ||
		f.RetryAfter <= 0 || f.RetryAfter > c.opt.MaxRetryAfter {
		return false
	}
	done.busy = true
	t := time.NewTimer(f.RetryAfter)
	defer t.Stop()
	select {
	case <-t.C:
		c.repeats(observe.Busy)
		return true
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return false
}
