package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
)

// diagnoser is a Caller that can ask a server which legacy versions it offers.
type diagnoser interface {
	LegacyOffer(ctx context.Context, call *Call) negotiate.Offer
	// Signs returns what else but a refusal is evidence of a legacy server.
	Signs() Signs
}

// Signs are how a legacy server may take server/discover but for an answer.
type Signs struct {
	Silence bool // it says nothing
	End     bool // it ends, and is one if it answers initialize when it is there again
}

// Doubtful reports whether the failure of a server/discover may be how a legacy server takes a method that it does not know:
// it is one if it answers initialize.
func Doubtful(caller Caller, f *Failure) bool {
	signs := SignsOf(caller)
	return signs.doubtful(f)
}

func (s *Signs) doubtful(f *Failure) bool {
	return s.End && f.Cause == Lost && f.Sent || f.Cause == BadResponse ||
		f.Status == http.StatusInternalServerError || f.Status == http.StatusNotImplemented
}

// Wrapper is a Caller around another one, which it hands out.
type Wrapper interface {
	Caller
	Unwrap() Caller
}

// Signer is a Wrapper that replaces the credentials of calls.
type Signer interface {
	Wrapper
	// Sign returns a call with the credentials that it is sent with.
	Sign(ctx context.Context, call *Call) (*Call, error)
}

// sign returns a call as the wrappers of a caller would send it, for what is sent around
// them.
func sign(ctx context.Context, caller Caller, call *Call) (_ *Call, err error) {
	for err == nil {
		if s, ok := caller.(Signer); ok {
			call, err = s.Sign(ctx, call)
		}
		w, ok := caller.(Wrapper)
		if !ok {
			break
		}
		caller = w.Unwrap()
	}
	return call, err
}

// diagnose returns what diagnoses a caller's server, nil when nothing does.
func diagnose(caller Caller) diagnoser {
	for {
		switch c := caller.(type) {
		case diagnoser:
			return c
		case Wrapper:
			caller = c.Unwrap()
		default:
			return nil
		}
	}
}

// peer asks through a Caller on behalf of one principal.
type peer struct {
	caller Caller
	call   Call
}

// NewPeer makes the Peer that a negotiate.Prober asks. call has the principal,
// the credentials and the params, which are {"_meta": …}; its method is
// ignored.
func NewPeer(caller Caller, call Call) negotiate.Peer {
	call.Method = mcp.MethodDiscover
	return &peer{caller: caller, call: call}
}

// Discover implements negotiate.Peer.
func (p *peer) Discover(ctx context.Context) negotiate.Outcome {
	signs := SignsOf(p.caller)
	if signs.Silence { // leave time for LegacyOffer
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/4))
			defer cancel()
		}
	}
	ans, err := p.caller.Do(ctx, &p.call, nil)
	if err == nil {
		return negotiate.Outcome{Result: ans.Result, Error: ans.Error}
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return negotiate.Outcome{Err: err}
	}
	silent := signs.Silence && f.Cause == Timeout
	return negotiate.Outcome{Err: err, NotModern: silent || f.Cause == NotModern, Silent: silent, Doubtful: signs.doubtful(f)}
}

// LegacyOffer implements negotiate.Peer.
func (p *peer) LegacyOffer(ctx context.Context) negotiate.Offer {
	call, err := sign(ctx, p.caller, &p.call)
	if err != nil {
		return negotiate.Offer{}
	}
	return LegacyOffer(ctx, p.caller, call)
}

// LegacyOffer asks the server of a caller which legacy versions it offers, with a call as it
// is to be sent.
func LegacyOffer(ctx context.Context, caller Caller, call *Call) negotiate.Offer {
	if d := diagnose(caller); d != nil {
		return d.LegacyOffer(ctx, call)
	}
	return negotiate.Offer{}
}

// SignsOf returns what else but a refusal is evidence that the server of a caller is a legacy one.
func SignsOf(caller Caller) Signs {
	if d := diagnose(caller); d != nil {
		return d.Signs()
	}
	return Signs{}
}

// LegacyInitialize is the params of the diagnostic handshake.
const LegacyInitialize = `{"protocolVersion":"` + string(mcp.V20251125) +
	`","capabilities":{},"clientInfo":{"name":"mcp-bridge-probe","version":"1"}}`

// Offered reads the versions out of the outcome of a legacy initialize.
func Offered(ans *Answer) []string {
	if ans == nil {
		return nil
	}
	if v, ok := rawjson.Text(rawjson.Get(ans.Result, "protocolVersion")); ok && mcp.Version(v).IsPlausible() {
		return []string{v}
	}
	if ans.Error == nil {
		return nil
	}
	var all []string
	for e := range rawjson.Elements(rawjson.Get(ans.Error.Data, "supported")) {
		if v, ok := rawjson.Text(e); ok && mcp.Version(v).IsPlausible() && len(all) < 16 {
			all = append(all, v)
		}
	}
	return all
}
