package mount

import (
	"context"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// handover is a backend that connects legacy clients to a server of their own
// era where that is more faithful than translating for them. It decides
// by the server's verdict, once per session.
type handover struct {
	downstream.Backend // serves everybody else
	policy             negotiate.RelayPolicy
	prober             *negotiate.Prober
	caller             upstream.Caller
	relay              *relay.Relay
	log                zerolog.Logger
	everyone           bool   // a verdict holds for all: the server cannot see who asks
	modernised         func() // called when the server ceases to be a legacy one; may be nil

	// legacyOnly is the latest verdict: all clients are the server's.
	legacyOnly atomic.Bool
}

// Open implements downstream.Backend.
func (h *handover) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	if !h.relays(ctx, caller, req.Params) {
		return h.Backend.Open(ctx, caller, req, push)
	}
	conv, result, err := h.relay.Open(ctx, caller, req, push)
	if err != nil {
		h.prober.Forget() // perhaps it is another server by now
	}
	return conv, result, err
}

func (h *handover) relays(ctx context.Context, caller downstream.Caller, params []byte) bool {
	if h.policy == negotiate.RelayNever {
		return false
	}
	if h.everyone {
		caller = downstream.Caller{}
	}
	v := h.judge(ctx, caller)
	return v.Relays(h.policy, params)
}

// judge asks the server what it is on behalf of a client.
func (h *handover) judge(ctx context.Context, caller downstream.Caller) negotiate.Verdict {
	v := h.prober.Probe(ctx, caller.Principal, upstream.NewPeer(h.caller, upstream.Call{
		Principal: caller.Principal, Authorization: caller.Authorization, Params: probeParams,
	}))
	h.note(&v)
	return v
}

// probeParams ask in the bridge's own name: the answer may serve others too.
var probeParams = translate.OwnParams(mcp.MethodDiscover, nil)

// note remembers what the server is. When it ceases to be a legacy one, it has
// lost the sessions of its clients: they must learn that, and begin anew.
func (h *handover) note(v *negotiate.Verdict) {
	if v.Era == negotiate.Unknown {
		return // it says nothing new
	}
	now := v.LegacyServer()
	if h.legacyOnly.Swap(now) == now {
		return
	}
	if now {
		h.log.Info().Str(logfield.Era, v.Era.String()).Strs("versions", v.Versions).
			Msg("the upstream speaks no newer revision than its clients: they are relayed to it unchanged")
		return
	}
	h.log.Info().Str(logfield.Era, v.Era.String()).Msg("the upstream is no legacy server any more: clients are translated for")
	if h.modernised != nil {
		h.modernised()
	}
}

// Judge asks the server what it is, in the bridge's own name, and makes what
// follows from it take effect.
func (m *Mount) Judge(ctx context.Context) negotiate.Verdict {
	if m.handover != nil {
		return m.handover.judge(ctx, downstream.Caller{})
	}
	return m.Prober.Probe(ctx, "", upstream.NewPeer(m.Upstream, upstream.Call{Params: probeParams}))
}

// Relayed reports whether a server with this verdict gets all legacy clients as
// they are.
func (m *Mount) Relayed(v *negotiate.Verdict) bool { return m.handover != nil && v.LegacyServer() }
