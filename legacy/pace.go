package legacy

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// tooFast refuses requests that come faster than rates allow. Answers and notifications
// never are: they end what is under way. Those with credentials that the session is not bound
// to, unproven ones, have a rate apart from its own.
func (a *admission) tooFast(w http.ResponseWriter, r *http.Request, s *session.Session, unproven bool, requests int, id jsonrpc.ID) bool {
	if a.opt.Rates == nil || requests == 0 {
		return false
	}
	sender := a.senderOf(r)
	if s != nil {
		sender.Session = s.ID()
	}
	if unproven {
		sender.Session += " unproven"
	}
	again, ok := a.opt.Rates.Admit(sender, requests)
	if ok {
		return false
	}
	a.guard.Refused(observe.TooFast)
	a.notices.fast.Warn().Str(logfield.SessionID, logfield.Short(sender.Session)).Str(logfield.Remote, sender.Address).
		Msg("requests come too fast (rates); refused one")
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(again.Seconds()))))
	web.WriteError(w, http.StatusTooManyRequests, id, jsonrpc.CodeInternal, tooFastText(again))
	return true
}

func tooFastText(again time.Duration) string {
	return "too many requests; try again in " + strconv.Itoa(int(math.Ceil(again.Seconds()))) + " s"
}

// senderOf tells whom a request is of, but for its session.
func (a *admission) senderOf(r *http.Request) rates.Sender {
	return rates.Sender{Principal: a.sessions.Named(r), Address: cmp.Or(web.Address(r), r.RemoteAddr), Tier: a.tierOf(r)}
}

// tierOf returns a client's tier. What its credentials claim counts once they are vouched
// for.
func (a *admission) tierOf(r *http.Request) (tier string) {
	switch {
	case a.opt.TierClaim != "" && a.sessions.Vouched(r):
		tier = session.Claim(web.Header(r.Header, "Authorization"), a.opt.TierClaim)
	case a.opt.TierHeader != "":
		tier = r.Header.Get(a.opt.TierHeader)
	}
	return tier
}

// pace returns what admits each request of a connection that is the session of this id;
// nil: all are.
func (a *admission) pace(r *http.Request, id string) func() *jsonrpc.Error {
	if a.opt.Rates == nil {
		return nil
	}
	return func() *jsonrpc.Error {
		sender := a.senderOf(r) // whose credentials may be vouched for meanwhile
		sender.Session = id
		again, ok := a.opt.Rates.Admit(sender, 1)
		if ok {
			return nil
		}
		a.notices.fast.Warn().Str(logfield.SessionID, logfield.Short(id)).Str(logfield.Remote, sender.Address).
			Msg("requests come too fast (rates); refused one")
		return fault.Internal(tooFastText(again))
	}
}

// paceOfOne is pace for the one client of a pair of pipes, which has neither credentials
// nor an address: it is a session.
func (o *Options) paceOfOne() func() *jsonrpc.Error {
	if o.Rates == nil {
		return nil
	}
	return func() *jsonrpc.Error {
		if again, ok := o.Rates.Admit(rates.Sender{Session: "stdio"}, 1); !ok {
			return fault.Internal(tooFastText(again))
		}
		return nil
	}
}
