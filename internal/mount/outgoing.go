package mount

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// outgoing is a Caller that keeps from the server what a client sent but the
// operator decided: credentials that are not meant for it, and headers that
// have a configured value.
type outgoing struct {
	upstream.Caller
	own  http.Header
	drop bool // no Authorization of a client goes up
}

var _ upstream.Wrapper = (*outgoing)(nil)

// decide wraps a caller where there is something to decide.
func decide(caller upstream.Caller, opt *Options) upstream.Caller {
	o := &outgoing{Caller: caller, own: opt.Upstream.Header, drop: opt.dropsAuthorization()}
	if !o.drop && len(o.own) == 0 {
		return caller
	}
	return o
}

// dropsAuthorization reports whether clients' credentials stay here: the
// operator says so, or has others for the server, or it is a process, which has no
// place for them.
func (o *Options) dropsAuthorization() bool {
	return o.Command != nil || o.DropAuthorization || o.Upstream.Header.Get("Authorization") != ""
}

// Unwrap implements upstream.Wrapper.
func (o *outgoing) Unwrap() upstream.Caller { return o.Caller }

// Do implements upstream.Caller.
func (o *outgoing) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	return o.Caller.Do(ctx, o.adapt(call), notify)
}

// Listen implements upstream.Caller.
func (o *outgoing) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	return o.Caller.Listen(ctx, o.adapt(call), notify)
}

func (o *outgoing) adapt(call *upstream.Call) *upstream.Call {
	header := o.without(call.Header)
	if !(o.drop && call.Authorization != "") && len(header) == len(call.Header) {
		return call
	}
	adapted := *call
	adapted.Header = header
	if o.drop {
		adapted.Authorization = ""
	}
	return &adapted
}

// without returns a client's headers but those that have a configured value.
func (o *outgoing) without(client http.Header) http.Header {
	kept := client
	for name := range o.own {
		if _, both := kept[name]; !both {
			continue
		}
		if len(kept) == len(client) {
			kept = client.Clone()
		}
		delete(kept, name)
	}
	return kept
}
