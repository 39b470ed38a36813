package mount

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// reachTimeout bounds the wait for an answer that only shows that somebody is there, where a probe has no longer.
const reachTimeout = 10 * time.Second

// reach asks the server whether it is there, and returns why not. Whatever it
// answers shows that it is; when it answers as a server of another era would, what
// follows from that takes effect. refused gets a refusal in the bridge's own name.
func (v *verdicts) reach(ctx context.Context, refused func(*upstream.Failure)) error {
	if v.everyone && v.legacyOnly.Load() && v.policy != negotiate.RelayNever {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, max(reachTimeout, v.prober.Timeout()))
	defer cancel()
	answer, err := v.caller.Do(within, &upstream.Call{Method: mcp.MethodDiscover, Params: probeParams}, nil)
	failure, _ := errors.AsType[*upstream.Failure](err)
	switch {
	case failure == nil:
	case failure.Cause == upstream.Unauthorized:
		refused(failure)
		return nil // it is there
	case failure.Cause == upstream.Timeout && v.everyone:
		return nil // its guard knows better whether it is only busy
	case absent(failure) && !upstream.Doubtful(v.caller, failure):
		return failure
	}
	modern := err == nil && answer.Error == nil && v.prober.Well(answer.Result)
	answer.Release()
	if failure != nil && absent(failure) && v.legacyOnly.Load() { // as some take what they do not know, and all who are down
		if offer := v.peer(downstream.Caller{}).LegacyOffer(within); offer.Refused == nil && len(offer.Versions) == 0 && !offer.Late {
			return failure
		}
	}
	if modern == v.legacyOnly.Load() && ctx.Err() == nil {
		if failure == nil || !upstream.Doubtful(v.caller, failure) || !v.prober.Stands() { // else it proves nothing yet
			v.prober.Forget()
		}
		verdict := v.judge(ctx, downstream.Caller{})
		refused(upstream.Refused(&verdict))
		if failure != nil && absent(failure) && verdict.Proven() != negotiate.Legacy {
			return failure
		}
	}
	return nil
}

// absent reports a failure that shows nobody who could answer.
func absent(f *upstream.Failure) bool {
	switch f.Cause {
	case upstream.Unreachable, upstream.TLS, upstream.Timeout, upstream.Lost, upstream.ServerError:
		return true
	case upstream.Busy: // without a status it is this process that is
		return f.Status != 0 && f.Status != http.StatusTooManyRequests
	}
	return false
}
