package passthrough

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Of a message on a channel that all requests share is changed what is unique to that
// channel: the id and the progress token, by whoever owns the channel, and here the name of a subscription.

// subscription gives a message of a subscription the name that the client knows.
func subscription(object []byte, id jsonrpc.ID) []byte {
	meta := rawjson.Get(object, "_meta")
	if rawjson.KindOf(meta) != rawjson.Object {
		return object
	}
	meta = rawjson.Apply(nil, meta, rawjson.Edit{Name: mcp.MetaSubscriptionID, Value: []byte(id)})
	return rawjson.Apply(nil, object, rawjson.Edit{Name: "_meta", Value: meta})
}

// Limits bounds what a server may take for a request.
type Limits struct {
	Round time.Duration // how long it may be silent about it; 2 min
	Call  time.Duration // how long it may take altogether; 30 min
}

func (l *Limits) defaults() {
	l.Round = cmp.Or(l.Round, 2*time.Minute)
	l.Call = cmp.Or(l.Call, 30*time.Minute)
}

var errSilent = fmt.Errorf("the server was silent for too long (timeouts.round): %w", context.DeadlineExceeded)

// within bounds a request; heard starts the time of silence again. A subscription has no
// end.
func (l *Limits) within(ctx context.Context, method string) (_ context.Context, cancel context.CancelFunc, heard func()) {
	if method == mcp.MethodListen {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, func() {}
	}
	ctx, end := context.WithTimeout(ctx, l.Call)
	ctx, silence := context.WithCancelCause(ctx)
	late := time.AfterFunc(l.Round, func() { silence(errSilent) })
	return ctx, func() { late.Stop(); silence(nil); end() }, func() { late.Reset(l.Round) }
}
