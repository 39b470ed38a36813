package bridge

import (
	"context"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// server is what the bridge knows about the upstream from one discover. Many
// conversations share one, so what it says is never changed.
type server struct {
	discover  []byte // raw DiscoverResult
	version   string // modern version to speak with it
	logging   bool
	subscribe bool // resources.subscribe
	tasks     bool // the tasks extension
	lists     listFilter
	greetings renderings // results of initialize for clients that can listen
}

// unknownServer stands for an upstream that nobody asked yet.
var unknownServer = &server{logging: true, version: string(mcp.V20260728)}

// listFilter is the list-changed part of a subscriptions/listen filter.
type listFilter struct{ tools, prompts, resources bool }

func (f listFilter) empty() bool { return f == listFilter{} }

// discover returns what the upstream offers to caller. The error is ready for
// the client: *downstream.Refusal or *jsonrpc.Error.
func (b *Bridge) discover(ctx context.Context, caller downstream.Caller) (*server, error) {
	verdict := b.opt.Prober.Probe(ctx, caller.Principal, b.peer(caller))
	if !verdict.Usable() {
		return nil, b.refuse(verdict.Err)
	}
	if srv := b.server.Load(); srv != nil && &srv.discover[0] == &verdict.Discover[0] {
		return srv, nil // the cached verdict: its sessions share what was read
	}
	srv := parseServer(verdict)
	b.server.Store(srv)
	return srv, nil
}

// peer asks on behalf of caller. The answer may be cached for others, so the
// bridge speaks in its own name.
func (b *Bridge) peer(caller downstream.Caller) negotiate.Peer {
	return upstream.NewPeer(b.opt.Upstream, upstream.Call{
		Principal:     caller.Principal,
		Authorization: caller.Authorization,
		Params:        translate.OwnParams(mcp.MethodDiscover, nil),
	})
}

func parseServer(verdict negotiate.Verdict) *server {
	caps := rawjson.Get(verdict.Discover, "capabilities")
	return &server{
		discover:  verdict.Discover,
		version:   verdict.Version,
		logging:   rawjson.KindOf(rawjson.Get(caps, "logging")) == rawjson.Object,
		subscribe: flag(caps, "resources", "subscribe"),
		tasks:     rawjson.Has(rawjson.Get(caps, "extensions"), mcp.ExtensionTasks),
		lists: listFilter{
			tools:     flag(caps, "tools", "listChanged"),
			prompts:   flag(caps, "prompts", "listChanged"),
			resources: flag(caps, "resources", "listChanged"),
		},
	}
}

func flag(caps []byte, name, member string) bool {
	return isTrue(rawjson.Get(caps, name), member)
}
