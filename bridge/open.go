package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
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
	result, err := b.greet(version, server, downstream.Reaches(push))
	if err != nil {
		b.catalog.Leave(server)
		return nil, nil, fault.Internal(err.Error())
	}
	conv := b.newConversation(version, caller, server, push)
	conv.Rules = losing(ctx, conv.Rules)
	conv.declare(clientInfo, capabilities)
	conv.table.Ended(req.ID) // a cancellation of initialize is nobody else's either
	if !b.adopt(conv) {
		b.catalog.Leave(server)
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

// discover returns what the upstream offers to caller, for a session to keep until it leaves. The error is ready for
// the client: *downstream.Refusal or *jsonrpc.Error. The answer may
// be cached for others, so the bridge asks in its own name.
func (b *Bridge) discover(ctx context.Context, caller downstream.Caller) (*catalog.Server, error) {
	principal := b.driver.SeenAs(&caller)
	server, err := b.catalog.Discover(ctx, principal, upstream.NewPeer(b.opt.Upstream, upstream.Call{
		Principal:     principal,
		Authorization: caller.Authorization,
		Tenant:        caller.Tenant,
		Params:        translate.OwnParams(mcp.MethodDiscover, nil),
	}))
	if err != nil {
		return nil, b.refuse(err)
	}
	if server, err = b.catalog.Join(server); err != nil {
		b.unserved.Warn().Str(logfield.Method, mcp.MethodInitialize).Err(err).Msg("a new session cannot be served")
		return nil, fault.Internal(err.Error(), fault.Reason("memory"), fault.Limit("limits.memory"))
	}
	return server, nil
}

// Restore implements downstream.Backend. A client that comes back is one that listens,
// and may have missed changes while nobody was there to hear of them (C-20).
func (b *Bridge) Restore(ctx context.Context, caller, by downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	r, err := readRecord(record)
	if err != nil {
		return nil, err
	}
	server, err := b.discover(ctx, caller)
	if _, refused := errors.AsType[*downstream.Refusal](err); refused && by.Authorization != caller.Authorization {
		server, err = b.discover(ctx, by)
	}
	if err != nil {
		return nil, err
	}
	conv := b.newConversation(r.Version, caller, server, push)
	conv.Rules = losing(ctx, conv.Rules)
	conv.fill(r)
	if !b.adopt(conv) {
		b.catalog.Leave(server)
		return nil, ErrClosed
	}
	hearing{conv}.announce(caller)
	if conv.reaches() {
		subscriptions.Missed(hearing{conv}, server.Lists)
	}
	if len(r.Resources) > 0 && conv.reaches() {
		hearing{conv}.subscriptions().Restore(caller.Authorization, r.Resources, nil, func(err error) {
			b.log.Warn().Err(err).Int("resources", len(r.Resources)).Msg("subscriptions of a restored session could not be taken up again")
		})
	}
	return conv, nil
}

func (b *Bridge) newConversation(version mcp.Version, caller downstream.Caller, srv *catalog.Server, push downstream.Pusher) *conversation {
	c := &conversation{
		b: b,
		Client: call.Client{
			Declaration: catalog.Undeclared,

			Driver:    b.driver,
			Rules:     b.rules.at(version),
			Server:    srv,
			Principal: b.driver.Identity(caller.Principal),
			Tenant:    caller.Tenant,
			Account:   caller.Account,
			Transport: caller.Transport,
		},
		push:          push,
		authorization: caller.Authorization,
	}
	c.table.most = b.limits.FlowsPerSession
	c.Session, c.Tables = c, &c.table
	return c
}

// losing returns the rules of a session, which tell what its client gets in other words if
// somebody wants to know: then they are its own.
func losing(ctx context.Context, rules *translate.Rules) *translate.Rules {
	to := downstream.LosingTo(ctx)
	if to == nil {
		return rules
	}
	own := *rules
	own.LostTo = to
	return &own
}

// refuse converts the failure of a discover for the initialize answer.
func (b *Bridge) refuse(err error) error {
	var failure *upstream.Failure
	if !errors.As(err, &failure) {
		return fault.Internal(err.Error())
	}
	b.unserved.Warn().Str(logfield.Method, mcp.MethodInitialize).Err(err).Msg("the upstream cannot serve a new session")
	if failure.Cause == upstream.Unauthorized {
		return ends.RefusalOf(failure)
	}
	return ends.Describe(failure)
}

// tooMuchDeclared refuses an initialize whose text a session would keep.
func tooMuchDeclared(size, limit int) *jsonrpc.Error {
	return fault.Params(fmt.Sprintf("clientInfo, capabilities and Authorization have %d bytes together; the limit is %d (limits.declaration)", size, limit),
		fault.Limit("limits.declaration"))
}
