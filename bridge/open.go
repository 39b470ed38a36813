package bridge

import (
	"context"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Open implements downstream.Backend: it answers initialize from the upstream's
// server/discover, cached or fresh, and never forwards it.
func (b *Bridge) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	version, rpcErr := negotiate.Version(rawjson.Get(req.Params, "protocolVersion"))
	if rpcErr != nil {
		return nil, nil, rpcErr
	}
	clientInfo, capabilities := rawjson.Get(req.Params, "clientInfo"), rawjson.Get(req.Params, "capabilities")
	if size := len(clientInfo) + len(capabilities) + len(caller.Authorization); size > b.limits.Declaration {
		return nil, nil, tooMuchDeclared(size, b.limits.Declaration)
	}
	server, err := b.discover(ctx, caller)
	if err != nil {
		return nil, nil, err
	}
	result, err := b.greet(version, server, push != nil)
	if err != nil {
		return nil, nil, fault.Internal(err.Error())
	}
	conv := b.newConversation(version, caller, server, push)
	conv.declare(clientInfo, capabilities)
	conv.early.ended(req.ID) // a cancellation of initialize is nobody else's either
	if !b.adopt(conv) {
		return nil, nil, fault.Internal(ErrClosed.Error())
	}
	return conv, result, nil
}

// greet returns the InitializeResult for clients of a version that can or cannot
// listen.
func (b *Bridge) greet(version mcp.Version, server *catalog.Server, listen bool) ([]byte, error) {
	render := func() ([]byte, error) {
		return translate.InitializeResult(version, server.Discover, translate.InitOptions{
			Name: b.opt.Name, Profile: b.opt.Rules.Profile, Listen: listen,
			HostTasks: b.opt.Rules.HostTasks && listen, ListTasks: true, // each session sees its own
		})
	}
	if !listen {
		return render()
	}
	return server.Greeting(version, render)
}

// Stateless implements downstream.Backend: requests without a session are served,
// but their client cannot be asked on them, so no capability is mirrored.
// Who answers for clients does so for these, too.
func (b *Bridge) Stateless(caller downstream.Caller, version mcp.Version) downstream.Conversation {
	conv := b.newConversation(version, caller, catalog.Unknown, nil)
	conv.Stranger = caller.Principal
	return conv
}

// discover returns what the upstream offers to caller. The error is ready for
// the client: *downstream.Refusal or *jsonrpc.Error. The answer may
// be cached for others, so the bridge asks in its own name.
func (b *Bridge) discover(ctx context.Context, caller downstream.Caller) (*catalog.Server, error) {
	principal := b.driver.SeenAs(caller.Principal)
	server, err := b.catalog.Discover(ctx, principal, upstream.NewPeer(b.opt.Upstream, upstream.Call{
		Principal:     principal,
		Authorization: caller.Authorization,
		Params:        translate.OwnParams(mcp.MethodDiscover, nil),
	}))
	if err != nil {
		return nil, b.refuse(err)
	}
	return server, nil
}
