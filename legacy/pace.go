package legacy

import (
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// tooFast refuses requests that come faster than rates allow. Answers and notifications
// never are: they end what is under way.
func (h *HTTP) tooFast(w http.ResponseWriter, r *http.Request, s *session.Session, requests int, id jsonrpc.ID) bool {
	if h.opt.Rates == nil || requests == 0 {
		return false
	}
	sender := h.senderOf(r)
	if s != nil {
		sender.Session = s.ID()
	}
	again, ok := h.opt.Rates.Admit(sender, requests)
	if ok {
		return false
	}
	h.guard.Refused(observe.TooFast)
	h.notices.fast.Warn().Str(logfield.SessionID, logfield.Short(sender.Session)).Str(logfield.Remote, sender.Address).
		Msg("requests come too fast (rates); refused one")
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(again.Seconds()))))
	web.WriteError(w, http.StatusTooManyRequests, id, jsonrpc.CodeInternal, tooFastText(again))
	return true
}

func tooFastText(again time.Duration) string {
	return "too many requests; try again in " + strconv.Itoa(int(math.Ceil(again.Seconds()))) + " s"
}

// senderOf tells whom a request is of, but for its session.
func (h *HTTP) senderOf(r *http.Request) rates.Sender {
	s := rates.Sender{Principal: h.sessions.Principal(r), Address: r.RemoteAddr}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		s.Address = host
	}
	s.Tier = h.tierOf(r)
	return s
}

func (h *HTTP) tierOf(r *http.Request) (tier string) {
	switch {
	case h.opt.TierClaim != "":
		tier = session.Claim(web.Header(r.Header, "Authorization"), h.opt.TierClaim)
	case h.opt.TierHeader != "":
		tier = r.Header.Get(h.opt.TierHeader)
	}
	return tier
}

// pace returns what admits each request of a connection that is the session of this id;
// nil: all are.
func (h *HTTP) pace(r *http.Request, id string) func() *jsonrpc.Error {
	if h.opt.Rates == nil {
		return nil
	}
	sender := h.senderOf(r)
	sender.Session = id
	return func() *jsonrpc.Error {
		again, ok := h.opt.Rates.Admit(sender, 1)
		if ok {
			return nil
		}
		h.notices.fast.Warn().Str(logfield.SessionID, logfield.Short(id)).Str(logfield.Remote, sender.Address).
			Msg("requests come too fast (rates); refused one")
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: tooFastText(again)}
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
			return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: tooFastText(again)}
		}
		return nil
	}
}
