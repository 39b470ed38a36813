package call

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// bearer has a call's requests made with the credentials of who acts for it (H-2). It has no state of its own.
type bearer struct{ *Call }

// actsLocked notes who acts for the call from now on. Which of two tokens is good for longer nobody knows:
// the one before stays known where both are proven to be of the same principal.
func (k bearer) actsLocked(caller downstream.Caller) {
	switch {
	case caller.Unproven || k.caller.Unproven || caller.Principal != k.caller.Principal:
		k.before = ""
	case caller.Authorization != k.caller.Authorization:
		k.before = k.caller.Authorization
	}
	k.caller = caller
}

// actsFor is whom a call of another process acts for, with the credentials of whoever needs it here.
func actsFor(c *Client, caller downstream.Caller, flow *mrtr.Flow) downstream.Caller {
	owners := !caller.Unproven && caller.Owns(flow.Principal)
	if !caller.Owns(flow.Principal) { // it is somebody's who knows no more than the session's id
		caller.Authorization = ""
	}
	caller.Principal, caller.Unproven = flow.Principal, !owners && c.Principal != "" && c.Principal != flow.Principal
	caller.Header = hop.Lasted(flow.Header) // not those of whoever brought it here
	return caller
}

// do makes a request, and once more with the credentials before where the server refuses these with 401: they
// may have come late, older than those.
func (k bearer) do(ctx context.Context, call *upstream.Call, hear func(jsonrpc.Message)) (*upstream.Answer, error) {
	answer, err := k.client.Driver.Upstream.Do(ctx, call, hear)
	if err != nil && k.goesBack(call, err) {
		return k.client.Driver.Upstream.Do(ctx, call, hear)
	}
	return answer, err
}

// goesBack has a request that was refused, and the call from now on, go with the other of its credentials, if
// it has such.
func (k bearer) goesBack(call *upstream.Call, err error) bool {
	failure, ok := errors.AsType[*upstream.Failure](err)
	if !ok || failure.Status != http.StatusUnauthorized {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.before == "":
		return false
	case call.Authorization == k.caller.Authorization:
		k.caller.Authorization, k.before = k.before, k.caller.Authorization
	case call.Authorization != k.before: // both are newer: the next request tries them
		return false
	}
	call.Authorization, call.Principal = k.caller.Authorization, k.client.Driver.SeenAs(&k.caller)
	return true
}
