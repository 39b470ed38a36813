package mount

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// verdicts is what a mount knows of its server's era, and what follows from a
// change of it.
type verdicts struct {
	policy   negotiate.RelayPolicy
	prober   *negotiate.Prober
	caller   upstream.Caller
	everyone bool // a verdict holds for all: the server cannot see who asks
	blind    bool // the same of a server over HTTP: no client's credentials reach it
	signsIn  bool // the bridge does, and says itself what nobody has signed in to
	log      zerolog.Logger
	changed  []func(legacy bool) // called when the server becomes, or ceases to be, a legacy one
	outgrown []func()            // called when it has proved to serve fewer legacy clients itself than before
	seen     func()              // called when it proved to be none; may be nil

	// telling is held while a verdict is noted, until everybody has learned it.
	telling sync.Mutex
	// own is which legacy clients the server has proved to serve itself. It is guarded by telling.
	own share
	// known says that there is a verdict which others may rely on.
	known atomic.Bool
	// disputed says that the server answers nobody without credentials, and told a client
	// something else than is known: each goes by what it is told itself.
	disputed atomic.Bool

	// unseen says that the latest verdict is a guess: the server refuses whoever asks it
	// until somebody has signed in. It ends when everybody has learned the other verdict.
	unseen atomic.Bool

	// legacyOnly is the latest verdict: all clients are the server's.
	legacyOnly atomic.Bool
	// httpSSE says that they are to be connected over HTTP+SSE, whatever their own
	// transport.
	httpSSE atomic.Bool
}

// relays reports whether a client that initializes with these params is handed to
// the server as it is.
func (v *verdicts) relays(ctx context.Context, caller downstream.Caller, params []byte) bool {
	if v.policy == negotiate.RelayNever {
		return false
	}
	verdict := v.judge(ctx, caller)
	return verdict.Relays(v.policy, params)
}

// judge asks the server what it is on behalf of a client. What a client's credentials are
// answered is its own affair: others learn what the bridge was told in its own name.
func (v *verdicts) judge(ctx context.Context, caller downstream.Caller) negotiate.Verdict {
	if v.everyone || v.blind {
		caller = downstream.Caller{}
	}
	verdict := v.prober.Probe(ctx, caller.Principal, v.peer(caller))
	if caller.Principal == "" && caller.Authorization == "" {
		v.note(&verdict)
	} else {
		v.hear(ctx, &verdict)
	}
	return verdict
}

func (v *verdicts) peer(caller downstream.Caller) negotiate.Peer {
	return upstream.NewPeer(v.caller, upstream.Call{
		Principal: caller.Principal, Authorization: caller.Authorization, Tenant: caller.Tenant, Params: probeParams,
	})
}

// probeParams ask in the bridge's own name: the answer may serve others too.
var probeParams = translate.OwnParams(mcp.MethodDiscover, nil)

// note remembers what the server is. When that changes the server has lost the
// sessions of its clients, or does not know those of the bridge's: their clients
// must learn that, and begin anew. A server that only refuses has shown nothing.
func (v *verdicts) note(verdict *negotiate.Verdict) {
	if verdict.Proven() == negotiate.Unknown {
		return // it says nothing new
	}
	v.telling.Lock()
	defer v.telling.Unlock()
	v.disputed.Store(false)
	v.noteLocked(verdict)
}

func (v *verdicts) noteLocked(verdict *negotiate.Verdict) {
	v.known.Store(true)
	v.httpSSE.Store(verdict.HTTPSSE)
	now := verdict.LegacyServer()
	changed := v.legacyOnly.Swap(now) != now
	guess := v.guessed(verdict)
	defer v.unseen.Store(guess)
	if !now && !guess && v.seen != nil {
		v.seen()
	}
	if !guess {
		defer v.outgrowLocked(verdict)
	}
	if !changed {
		return
	}
	follows := "they are relayed to it unchanged"
	if v.policy == negotiate.RelayNever {
		follows = "it serves nobody here (legacy-relay)"
	}
	if now {
		v.log.Info().Str(logfield.Era, verdict.Era.String()).Strs("versions", verdict.Versions).
			Msg("the upstream speaks no newer revision than its clients: " + follows)
	} else {
		v.log.Info().Str(logfield.Era, verdict.Era.String()).Msg("the upstream is no legacy server any more: clients are translated for")
	}
	for _, learn := range v.changed {
		learn(now)
	}
}

// guessed reports whether a verdict says what the bridge did.
func (v *verdicts) guessed(verdict *negotiate.Verdict) bool {
	return v.signsIn && signin.Guessed(verdict.Discover)
}

// outgrowLocked tells those whom the server serves itself when it has proved to serve fewer now.
func (v *verdicts) outgrowLocked(verdict *negotiate.Verdict) {
	before := v.own
	if v.own = shareOf(verdict); v.own >= before {
		return
	}
	for _, learn := range v.outgrown {
		learn()
	}
}

// share is which legacy clients a server serves itself.
type share uint8

const (
	none share = iota
	some       // of a dual-era server those that are relayed to it
	all
)

func shareOf(verdict *negotiate.Verdict) share {
	switch {
	case verdict.LegacyServer() && !verdict.Late:
		return all
	case verdict.LegacyServer(), verdict.Era == negotiate.Dual:
		return some
	}
	return none
}

// dual reports whether that is some of them.
func (v *verdicts) dual() bool {
	v.telling.Lock()
	defer v.telling.Unlock()
	return v.own == some
}

// settle has a server looked at that was not seen so far, and reports whether it is a
// legacy one. A question that was under way may have been refused: hence the second try.
// The sessions that began unseen have learned what it reports: a call that it ends is
// served by the server then.
func (v *verdicts) settle(ctx context.Context) (legacy bool) {
	for tries := 0; tries < 2 && v.unseen.Load(); tries++ {
		v.prober.Forget()
		v.judge(ctx, downstream.Caller{})
	}
	legacy, _ = v.latest()
	return legacy
}

// latest returns the verdict that everybody has learned, and whether it is a guess.
func (v *verdicts) latest() (legacy, guess bool) {
	v.telling.Lock()
	defer v.telling.Unlock()
	return v.legacyOnly.Load(), v.unseen.Load()
}

// modern reports whether the server has shown to be one of this era, or of both.
func (v *verdicts) modern() bool {
	return v.known.Load() && !v.unseen.Load() && !v.legacyOnly.Load()
}

// serves returns why the bridge's own calls are nothing for the server, if it is so.
func (v *verdicts) serves(ctx context.Context) error {
	if v.settle(ctx) {
		return errOnlyOlder
	}
	return nil
}
