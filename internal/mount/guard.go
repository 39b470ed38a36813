package mount

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// guard has the endpoint's own metadata and checks take effect.
func (o *Options) guard() {
	if o.Resource == nil {
		return
	}
	o.Legacy.Challenge = o.Resource.Challenge
	if o.Resource.Checks() {
		o.Legacy.Admit, o.Legacy.Principal, o.Legacy.Withdrawn = admission(o.Resource), o.Resource.Principal, o.Resource.Withdrawn
	}
}

// admission is how clients' tokens are checked, if they are.
func admission(r *resource.Resource) func(*http.Request) *downstream.Refusal {
	return func(req *http.Request) *downstream.Refusal {
		refused := r.Admit(req)
		if refused == nil {
			return nil
		}
		out := &downstream.Refusal{Status: refused.Status, Body: jsonrpc.AppendError(nil, "", fault.Request(refused.Reason))}
		if refused.Challenge != "" {
			out.Challenge = []string{refused.Challenge}
		}
		return out
	}
}
