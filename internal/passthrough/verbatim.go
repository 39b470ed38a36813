package passthrough

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Of a message on a channel that all requests share is changed what is unique to that
// channel: the id, the progress token and the name of a subscription.

// tokens makes progress tokens that no other request has.
type tokens struct{ last atomic.Uint64 }

// fresh returns the params with a token of their own instead of the client's, if they
// have one.
func (t *tokens) fresh(params, token []byte) []byte {
	if kind := rawjson.KindOf(token); kind != rawjson.String && kind != rawjson.Number {
		return params
	}
	own := append(strconv.AppendUint([]byte(`"m`), t.last.Add(1), 10), '"')
	meta := rawjson.Apply(nil, rawjson.Get(params, "_meta"), rawjson.Edit{Name: "progressToken", Value: own})
	return rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta", Value: meta})
}

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
