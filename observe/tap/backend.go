package tap

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// backend sees which sessions clients open, and what they say.
type backend struct {
	downstream.Backend
	tap   *Tap
	watch observe.Watcher
}

// Backend returns inner with what it does reported to watch, and its messages kept
// while somebody looks.
func (t *Tap) Backend(inner downstream.Backend, watch observe.Watcher) downstream.Backend {
	return &backend{inner, t, watch}
}

// Modern implements downstream.Backend.
func (b *backend) Modern() http.Handler {
	inner := b.Backend.Modern()
	if inner == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.watch.Passed(true)
		b.watch.Modern(product(r.UserAgent()), r.Header.Get(mcp.HeaderProtocolVersion))
		if b.tap.book != nil {
			b.tap.book.Modern(r.UserAgent(), r.Header.Get(mcp.HeaderProtocolVersion))
		}
		inner.ServeHTTP(w, r)
	})
}

// product is the name of the program in a User-Agent.
func product(agent string) string {
	name, _, _ := strings.Cut(agent, " ")
	name, _, _ = strings.Cut(name, "/")
	return name
}

// Connected implements downstream.Backend.
func (b *backend) Connected() downstream.Conversation {
	inner := b.Backend.Connected()
	if inner == nil {
		return nil
	}
	return &connected{inner, b.watch}
}

// connected counts the requests of a connection that are handed on.
type connected struct {
	downstream.Conversation
	watch observe.Watcher
}

// Serve implements downstream.Conversation.
func (c *connected) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	c.watch.Passed(true)
	c.Conversation.Serve(ctx, caller, req, out)
}

// Relayer implements downstream.Backend.
func (b *backend) Relayer() downstream.Relayer {
	inner := b.Backend.Relayer()
	if inner == nil {
		return nil
	}
	return &relayer{inner, b.tap, b.watch}
}

// relayer counts the exchanges that are handed on.
type relayer struct {
	downstream.Relayer
	tap   *Tap
	watch observe.Watcher
}

// Relay implements downstream.Relayer.
func (r *relayer) Relay(req *http.Request, msg *jsonrpc.Message, caller func() downstream.Caller) http.Handler {
	next := r.Relayer.Relay(req, msg, caller)
	if next != nil {
		r.watch.Passed(false)
		if r.tap.book != nil && msg != nil && msg.Method == mcp.MethodInitialize {
			name, release := introduced(msg.Params)
			revision, _ := rawjson.Text(rawjson.Get(msg.Params, "protocolVersion"))
			r.tap.book.Relayed(name, release, revision)
		}
	}
	return next
}

// Stateless implements downstream.Backend.
func (b *backend) Stateless(caller downstream.Caller, version mcp.Version) downstream.Conversation {
	conv := b.Backend.Stateless(caller, version)
	if b.tap.tracer == nil && !b.tap.open.Load() {
		return conv
	}
	return &conversation{Conversation: conv, tap: b.tap}
}

// Open implements downstream.Backend.
func (b *backend) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	began := time.Now()
	c := &conversation{tap: b.tap, number: b.tap.sessions.Add(1)}
	conv, result, err := b.Backend.Open(c.losing(ctx), caller, req, push)
	done := observe.CallEnd{Method: req.Method, Took: time.Since(began), Transport: caller.Transport, HTTP: caller.HTTP}
	if err != nil {
		done.End, done.Cause, done.Code = observe.Failed, "refused", codeOf(err)
		b.watch.CallEnded(done)
		return conv, result, err
	}
	done.Version = conv.Version()
	b.watch.CallEnded(done)
	name, release := introduced(req.Params)
	b.watch.SessionOpened(name, conv.Version())
	c.Conversation, c.client = conv, clip(name)
	c.counts(b.tap.book.Session(name, release, string(conv.Version())))
	b.tap.enter(c)
	c.opened(&req, result, began)
	return c, result, nil
}

// introduced returns the name and the version of a client by the params of initialize.
func introduced(params []byte) (name, release string) {
	info := rawjson.Get(params, "clientInfo")
	name, _ = rawjson.Text(rawjson.Get(info, "name"))
	release, _ = rawjson.Text(rawjson.Get(info, "version"))
	return name, release
}

// Restore implements downstream.Backend.
func (b *backend) Restore(ctx context.Context, caller, by downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	c := &conversation{tap: b.tap, number: b.tap.sessions.Add(1)}
	conv, err := b.Backend.Restore(c.losing(ctx), caller, by, record, push)
	if err != nil {
		return conv, err
	}
	info := conv.Look().ClientInfo
	name, _ := rawjson.Text(rawjson.Get(info, "name"))
	release, _ := rawjson.Text(rawjson.Get(info, "version"))
	c.Conversation, c.client = conv, clip(name)
	c.counts(b.tap.book.Again(name, release, string(conv.Version())))
	return b.tap.enter(c), nil
}

// codeOf returns the code of the JSON-RPC error that a client gets for err.
func codeOf(err error) int {
	var theirs *jsonrpc.Error
	if errors.As(err, &theirs) {
		return theirs.Code
	}
	return jsonrpc.CodeInternal
}
