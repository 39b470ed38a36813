package passthrough

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/mirror"
)

// Server is a modern server that many clients share over one channel.
type Server interface {
	Sender
	// Notify hands a notification on: the method, the params and whose it is are those of a call.
	Notify(ctx context.Context, call *upstream.Call) error
}

// ProcessOptions configures a Process. Server is required.
type ProcessOptions struct {
	Server Server
	// Legacy reports whether the server turned out to speak no modern revision;
	// nil: it does. Then requests are refused as a legacy server would, so that
	// clients of both eras fall back to initialize.
	Legacy func(context.Context) bool
	// Logs is told of a request that wants log messages, and by whom. May says
	// whether one that arrives can only be meant for that request; done ends it.
	// nil: nobody gets any.
	Logs func(caller string) (may func() bool, done func())

	CommitDelay  time.Duration // a response that takes longer becomes a stream; 2 s
	KeepAlive    time.Duration // longest silence on a stream; 15 s
	WriteTimeout time.Duration // how long a client may block one write; 10 s
	Limits       Limits
	Tools        *mirror.Tools // which arguments headers repeat; nil: nobody else needs to know
	Log          zerolog.Logger
}

// Process is an http.Handler that serves modern requests from a modern server
// that is a process (E-45 to E-50). Of a message is changed what is unique to
// the one channel that all requests share: the id, the progress token (both by
// Server) and the name of a subscription; the client sees its own. A client that goes away
// cancels its request.
//
//	POST ──▶ headers match body? ──▶ Verbatim ──▶ notifications as SSE
//	           400, -32020                   └──▶ response: JSON, or the last event
type Process struct {
	opt    ProcessOptions
	mirror *mirror.Checker
	look   singleflight.Group
	seldom zerolog.Logger // for requests that fail
	serial atomic.Uint64  // numbers requests of nobody known
	traffic
}

// NewProcess returns a Process. Nothing is sent before the first request.
func NewProcess(opt ProcessOptions) *Process {
	opt.CommitDelay = cmp.Or(opt.CommitDelay, 2*time.Second)
	opt.KeepAlive = cmp.Or(opt.KeepAlive, 15*time.Second)
	opt.WriteTimeout = cmp.Or(opt.WriteTimeout, 10*time.Second)
	opt.Limits.defaults()
	p := &Process{opt: opt, mirror: mirror.NewChecker(opt.Tools), seldom: logfield.Seldom(opt.Log)}
	p.open()
	return p
}

// ServeHTTP implements http.Handler. Its caller has bounded the body.
func (p *Process) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, leave := p.enter(w, r)
	if leave == nil {
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, "", fault.Internal(shuttingDown))
		return
	}
	defer leave()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // nobody is there to be told
	}
	msg, err := jsonrpc.Parse(body)
	if refusal := (*jsonrpc.Error)(nil); errors.As(err, &refusal) {
		writeError(w, http.StatusBadRequest, msg.ID, refusal)
		return
	}
	if p.opt.Legacy != nil && p.opt.Legacy(ctx) {
		// no error of the modern era.
		writeError(w, http.StatusBadRequest, msg.ID, fault.Request("no session: initialize first"))
		return
	}
	if msg.Method == mcp.MethodToolsCall && p.mirror.Blind() {
		p.learn(ctx, &msg)
	}
	if fault := p.mirror.Fault(r.Header, &msg); fault != nil {
		writeError(w, http.StatusBadRequest, msg.ID, fault)
		return
	}
	if msg.Kind() != jsonrpc.Request {
		p.notify(ctx, w, &msg)
		return
	}
	if err := fault.Token(downstream.ProgressTokenOf(msg.Params)); err != nil {
		writeError(w, http.StatusBadRequest, msg.ID, err)
		return
	}
	p.call(ctx, w, r, &msg)
}

// notify hands a notification on. A cancellation names a request by an id that
// only the client knows, and over HTTP has no meaning: closing the stream is
// how modern clients cancel.
func (p *Process) notify(ctx context.Context, w http.ResponseWriter, msg *jsonrpc.Message) {
	if msg.Method != mcp.NotificationCancelled {
		if err := p.opt.Server.Notify(ctx, &upstream.Call{Method: msg.Method, Params: msg.Params, Account: downstream.ChargedTo(ctx)}); err != nil {
			p.fail(ctx, w, "", err)
			return
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// call serves a request.
func (p *Process) call(ctx context.Context, w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message) {
	ctx, cancel, heard := p.opt.Limits.within(ctx, msg.Method)
	defer cancel()
	out := newResponse(w, r, msg, p, cancel)
	defer out.end()
	meta := rawjson.Get(msg.Params, "_meta")
	if p.opt.Logs != nil && rawjson.Has(meta, mcp.MetaLogLevel) {
		may, done := p.opt.Logs(p.caller(r, meta))
		out.mayLog = may
		defer done()
	}
	hold := budget.On(downstream.ChargedTo(r.Context()))
	defer hold.Release()
	ans, err := p.opt.Server.Verbatim(ctx, &upstream.Call{Method: msg.Method, Params: msg.Params, Idle: out.flush, Held: &hold, Account: hold.Account()}, func(msg jsonrpc.Message) {
		heard()
		out.notify(msg)
	})
	switch {
	case err == nil:
		if msg.Method == mcp.MethodToolsList && ans.Error == nil {
			p.mirror.Learn(ans.Result)
		}
		out.finish(ans)
		ans.Release()
	case r.Context().Err() != nil && !isLapsed(ctx):
		out.leave()
	case out.listen && (p.draining.Err() != nil || isLapsed(ctx)):
		out.finish(&upstream.Answer{Result: unsubscribed(msg.ID)})
	case isStopped(ctx):
		out.fail(stopped{})
	default:
		out.fail(err)
	}
}

// learn asks the server for its tools, once, in the name of a client that calls
// one before anybody has listed them: its headers may repeat arguments. Without
// an answer they are not compared.
func (p *Process) learn(ctx context.Context, msg *jsonrpc.Message) {
	meta := rawjson.Apply(nil, rawjson.Get(msg.Params, "_meta"),
		rawjson.Edit{Name: "progressToken"}, rawjson.Edit{Name: mcp.MetaLogLevel})
	if rawjson.KindOf(meta) != rawjson.Object {
		return
	}
	done := p.look.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(p.closing, p.opt.WriteTimeout)
		defer cancel()
		p.list(ctx, meta)
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (p *Process) list(ctx context.Context, meta []byte) {
	err := upstream.EachPage(meta, func(params []byte) (*upstream.Answer, error) {
		return p.opt.Server.Verbatim(ctx, &upstream.Call{Method: mcp.MethodToolsList, Params: params}, nil)
	}, func(page *upstream.Answer) error {
		p.mirror.Learn(page.Result)
		return nil
	})
	if err != nil {
		p.mirror.Learn([]byte(`{}`)) // not again for every call
	}
}
