package mount

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/internal/vouch"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// genuine tells tokens that a server knows from those that it takes because it looks at none.
type genuine struct {
	caller  upstream.Caller
	vouched *vouch.Credentials
	ctx     context.Context // ends with the mount
}

// genuine returns what tells them apart; nil: the server sees no tokens of clients.
func (o *Options) genuine(ctx context.Context, caller upstream.Caller) func(tenant, bound, newer string, accepted bool) bool {
	if o.vouched == nil {
		return nil
	}
	return (&genuine{caller, o.vouched, ctx}).knows
}

// genuineWait is how long the server may take altogether to say what it thinks of a token.
const genuineWait = 5 * time.Second

// harmless is what it is asked for: nothing happens by it, and a server that judges all requests
// in the same way judges this one, too.
var harmless = []string{mcp.MethodDiscover, mcp.MethodToolsList}

// knows reports whether the server knows a newer token from one that anybody could have
// written with the claims of the one that a session is bound to: it gives something to the
// first and refuses the very same to the second, which is asked for with a token that nobody
// has signed. That it has accepted the newer one says less: there may be tools for everybody.
//
// A server that gives all this to anybody is believed if it has accepted the newer one for the
// very thing that it has refused others since. One that has refused nobody anything, be it here or
// at another replica, takes every token, as far as anybody can see: then the session's id is all that
// protects it, from who has shown it a token, which it accepted. While the others cannot be asked
// they may know better.
// It is asked in turn, as whose tenant is.
func (g *genuine) knows(tenant, bound, newer string, accepted bool) bool {
	ctx, cancel := context.WithTimeout(g.ctx, genuineWait)
	defer cancel()
	forged := bearer.Forged(bound)
	for _, method := range harmless {
		switch g.ask(ctx, tenant, method, forged) {
		case saysNo:
			return g.ask(ctx, tenant, method, newer) == saysYes
		case saysNothing:
			return false
		}
	}
	switch {
	case g.vouched.Singled(newer):
		return true
	case g.vouched.Guards() || !accepted || !g.recall():
		return false
	}
	return !g.vouched.Guards()
}

// recallWait is how long the store may take to say what others were refused. It is the store's own time:
// one that is given too little counts as away.
const recallWait = 5 * time.Second

func (g *genuine) recall() bool {
	ctx, cancel := context.WithTimeout(g.ctx, recallWait)
	defer cancel()
	return g.vouched.Recall(ctx) == nil
}

// saying is what a server said to a token.
type saying uint8

const (
	saysNothing saying = iota // it was not reached, or has a fault
	saysNo                    // it wants another token
	saysYes
	saysError // which is about something else
)

func (g *genuine) ask(ctx context.Context, tenant, method, authorization string) saying {
	call := &upstream.Call{Method: method, Authorization: authorization, Principal: ownPrincipal, Tenant: tenant, Params: translate.OwnParams(method, nil)}
	switch answer, err := g.caller.Do(ctx, call, nil); {
	case err == nil && answer.Error == nil:
		return saysYes
	case err == nil:
		return saysError
	default:
		failure, ok := errors.AsType[*upstream.Failure](err)
		if ok && (failure.Status == http.StatusUnauthorized || failure.Status == http.StatusForbidden) {
			return saysNo
		}
		return saysNothing
	}
}

// ownPrincipal is under whose name the answers are remembered that nobody is shown. No
// principal is called so: it has a space.
const ownPrincipal = "the bridge itself"
