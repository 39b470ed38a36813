// Package dialect speaks with servers that still speak a draft of 2026-07-28. It
// stands between the bridge and the upstream client and gives every message its
// final form, so that neither knows drafts (I-1). It owns what is remembered for
// that: whether the server speaks a draft, and what drafts made tasks carry. The
// forms themselves are in forms.go: this is the one room that knows them.
package dialect

import (
	"context"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Mode says when a server is taken to speak a draft.
type Mode string

// The modes (I-3).
const (
	Auto Mode = "auto" // when it says so, by the versions that it offers
	On   Mode = "on"   // always
	Off  Mode = "off"  // never; a server that offers only drafts is refused
)

// Options configures a Dialect.
type Options struct {
	Mode Mode // empty: Auto
	// WrapAnswers sends each input response as {"result": …}, while the server
	// is taken to speak a draft (I-6).
	WrapAnswers bool
	Log         zerolog.Logger
}

// Dialect is what is known of the dialect of one upstream. It implements
// upstream.Fallback and is safe for concurrent use.
type Dialect struct {
	opt    Options
	active atomic.Bool
	tasks  tasks
}

var _ upstream.Fallback = (*Dialect)(nil)

// New returns the dialect of an upstream that nobody asked yet.
func New(opt Options) *Dialect {
	if opt.Mode == "" {
		opt.Mode = Auto
	}
	d := &Dialect{opt: opt}
	d.active.Store(opt.Mode == On)
	return d
}

// Active reports whether the server is taken to speak a draft.
func (d *Dialect) Active() bool { return d.active.Load() }

// Error implements upstream.Fallback. A refusal that names a draft is how some
// servers first say what they speak.
func (d *Dialect) Error(status int, e *jsonrpc.Error) *jsonrpc.Error {
	if offered := refusedFor(e); speaksDraft(offered) {
		d.judge(offered)
	}
	return forms{On: d.Active()}.Error(status, e)
}

// Version implements upstream.Fallback.
func (d *Dialect) Version(offered []byte) string {
	if d.opt.Mode == Off {
		return ""
	}
	return Newest(offered)
}

// Offered implements upstream.Fallback.
func (d *Dialect) Offered(versions []byte) { d.judge(versions) }

// judge believes the server's latest list of versions (I-3).
func (d *Dialect) judge(offered []byte) {
	if d.opt.Mode != Auto {
		return
	}
	speaks := speaksDraft(offered)
	if d.active.Swap(speaks) == speaks {
		return
	}
	if speaks {
		d.opt.Log.Info().Str(logfield.Version, Newest(offered)).
			Msg("the upstream speaks a draft of 2026-07-28; its messages are adapted (draft: auto)")
	} else {
		d.opt.Log.Info().Msg("the upstream speaks a draft no longer")
	}
}

// Caller returns a Caller that speaks to inner's server in its dialect. The
// final protocol costs it one look at a flag.
func (d *Dialect) Caller(inner upstream.Caller) upstream.Caller {
	return &caller{inner, d}
}

type caller struct {
	upstream.Caller
	dialect *Dialect
}

var _ upstream.Wrapper = (*caller)(nil)

// Unwrap implements upstream.Wrapper.
func (c *caller) Unwrap() upstream.Caller { return c.Caller }

// Do implements upstream.Caller.
func (c *caller) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if c.dialect.Active() {
		call = c.dialect.outgoing(call)
	}
	ans, err := c.Caller.Do(ctx, call, notify)
	if err == nil && ans.Error == nil && call.Method == mcp.MethodDiscover {
		c.dialect.judge(rawjson.Get(ans.Result, "supportedVersions"))
	}
	if err != nil || !c.dialect.Active() {
		return ans, err
	}
	return c.incoming(ctx, call, ans)
}

// outgoing puts a request into the form that the draft expects.
func (d *Dialect) outgoing(call *upstream.Call) *upstream.Call {
	params := call.Params
	if responses := rawjson.Get(params, "inputResponses"); responses != nil && d.opt.WrapAnswers {
		wrapped := forms{WrapAnswers: true}.InputResponses(responses)
		params = rawjson.Apply(nil, params, rawjson.Edit{Name: "inputResponses", Value: wrapped})
	}
	method := call.Method
	if aboutTask(method) {
		method, params = d.tasks.outgoing(call, params)
	}
	adapted := *call
	adapted.Method, adapted.Params = method, params
	return &adapted
}

// incoming brings an answer to its final form.
func (c *caller) incoming(ctx context.Context, call *upstream.Call, ans *upstream.Answer) (*upstream.Answer, error) {
	if ans.Error == nil {
		ans.Replace(forms{On: true}.Result(call.Method, ans.Result))
	}
	switch {
	case call.Method == mcp.MethodToolsCall:
		return ans, c.dialect.tasks.created(call, ans)
	case call.Method == mcp.MethodTasksGet:
		return c.taskState(ctx, call, ans)
	case call.Method == mcp.MethodTasksCancel:
		c.dialect.tasks.forget(call)
	}
	return ans, nil
}
