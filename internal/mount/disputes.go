package mount

import (
	"context"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// hear learns what the server told a client with credentials. A token that is too long for
// a server or a proxy before it, or a tenant with a backend of its own, is answered as nobody
// else is: where that would change something for others, the bridge looks itself.
//
//	the bridge sees what the server is ──▶ that counts
//	it is refused for want of credentials, and nobody knew before ──▶ the client's counts
//	   └─ and something else was known ──▶ disputed: each client goes by its own
//	it cannot see ──▶ what was known stays
func (v *verdicts) hear(ctx context.Context, verdict *negotiate.Verdict) {
	if verdict.Proven() == negotiate.Unknown || v.confirms(verdict) {
		return
	}
	own := v.prober.Again(ctx, "", v.peer(downstream.Caller{}))
	v.note(&own)
	if upstream.Refused(&own) != nil {
		v.believe(verdict)
	}
}

// confirms reports whether a verdict is what everybody relies on already.
func (v *verdicts) confirms(verdict *negotiate.Verdict) bool {
	v.telling.Lock()
	defer v.telling.Unlock()
	same := v.legacyOnly.Load() == verdict.LegacyServer() && v.httpSSE.Load() == verdict.HTTPSSE
	if same {
		v.known.Store(true)
	}
	return same
}

// believe goes by a client's verdict on a server that answers nobody without credentials.
func (v *verdicts) believe(verdict *negotiate.Verdict) {
	v.telling.Lock()
	defer v.telling.Unlock()
	switch {
	case !v.known.Load():
		v.noteLocked(verdict)
	case !v.disputed.Swap(true):
		v.log.Info().Msg("the upstream tells clients different things about its revision, and the bridge nothing without their credentials: each is served by what it is told itself")
	}
}

// relied says that sessions exist which rely on the server being none for legacy clients alone.
func (v *verdicts) relied() { v.known.Store(true) }

// view is what the server is for one client.
type view struct {
	legacy  bool // all clients are the server's
	httpSSE bool // and are connected over HTTP+SSE
	modern  bool // it has shown this client to be no server for it
}

// of returns what the server is for a client: what everybody knows, or, while that is
// disputed, what the server says to this one.
func (v *verdicts) of(ctx context.Context, caller func() downstream.Caller) view {
	if v.disputed.Load() {
		from := caller()
		if verdict := v.prober.Probe(ctx, from.Principal, v.peer(from)); verdict.Proven() != negotiate.Unknown {
			return view{verdict.LegacyServer(), verdict.HTTPSSE, verdict.Era == negotiate.Modern}
		}
	}
	return view{legacy: v.legacyOnly.Load(), httpSSE: v.httpSSE.Load()}
}
