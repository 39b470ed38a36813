package bridge

import (
	"context"

	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/rawjson"
)

// server is what the bridge knows about the upstream from one discover. Many
// conversations share one, so it is never changed.
type server struct {
	discover  []byte // raw DiscoverResult
	logging   bool
	subscribe bool // resources.subscribe
	lists     listFilter
	known     bool // false when nothing was discovered: gate nothing
}

// unknownServer stands for an upstream that nobody asked yet.
var unknownServer = &server{logging: true}

// listFilter is the list-changed part of a subscriptions/listen filter.
type listFilter struct{ tools, prompts, resources bool }

func (f listFilter) empty() bool { return f == listFilter{} }

// discover returns what the upstream offers to caller. The error is ready for
// the client: *legacy.Refusal or *jsonrpc.Error.
func (b *Bridge) discover(ctx context.Context, caller legacy.Caller) (*server, error) {
	verdict, err := b.opt.Prober.Discover(ctx, caller.Principal, caller.Authorization)
	if err != nil {
		return nil, b.refuse(err)
	}
	return parseServer(verdict.Discover), nil
}

func parseServer(discover []byte) *server {
	caps := rawjson.Get(discover, "capabilities")
	return &server{
		known:     true,
		discover:  discover,
		logging:   rawjson.KindOf(rawjson.Get(caps, "logging")) == rawjson.Object,
		subscribe: flag(caps, "resources", "subscribe"),
		lists: listFilter{
			tools:     flag(caps, "tools", "listChanged"),
			prompts:   flag(caps, "prompts", "listChanged"),
			resources: flag(caps, "resources", "listChanged"),
		},
	}
}

func flag(caps []byte, name, member string) bool {
	return string(rawjson.Get(rawjson.Get(caps, name), member)) == "true"
}
