package tap

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// backend reports which sessions clients open.
type backend struct {
	downstream.Backend
	watch observe.Watcher
}

// relayer is the same for a backend that may hand whole exchanges on.
type relayer struct {
	*backend
	inner downstream.Relayer
}

// Relay implements downstream.Relayer.
func (r *relayer) Relay(req *http.Request, msg *jsonrpc.Message, caller func() downstream.Caller) http.Handler {
	next := r.inner.Relay(req, msg, caller)
	if next != nil {
		r.watch.Passed(false)
	}
	return next
}

// Backend returns inner with what it does reported to watch.
func Backend(inner downstream.Backend, watch observe.Watcher) downstream.Backend {
	b := &backend{inner, watch}
	if r, ok := inner.(downstream.Relayer); ok {
		return &relayer{b, r}
	}
	return b
}

// Modern implements downstream.Backend.
func (b *backend) Modern() http.Handler {
	inner := b.Backend.Modern()
	if inner == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.watch.Passed(true)
		inner.ServeHTTP(w, r)
	})
}

// Open implements downstream.Backend.
func (b *backend) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	began := time.Now()
	conv, result, err := b.Backend.Open(ctx, caller, req, push)
	done := observe.Call{Method: req.Method, Took: time.Since(began)}
	if err != nil {
		done.End, done.Cause, done.Code = observe.Failed, "refused", codeOf(err)
		b.watch.CallEnded(done)
		return conv, result, err
	}
	done.Version = conv.Version()
	b.watch.CallEnded(done)
	name, _ := rawjson.Text(rawjson.Get(rawjson.Get(req.Params, "clientInfo"), "name"))
	b.watch.SessionOpened(name, conv.Version())
	return conv, result, nil
}

// codeOf returns the code of the JSON-RPC error that a client gets for err.
func codeOf(err error) int {
	var theirs *jsonrpc.Error
	if errors.As(err, &theirs) {
		return theirs.Code
	}
	return jsonrpc.CodeInternal
}
