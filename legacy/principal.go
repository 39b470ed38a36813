package legacy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/web"
)

// hashPrincipal is the default identity of a request: an opaque digest of its
// credentials, "" without any.
func hashPrincipal(r *http.Request) string {
	auth := web.Header(r.Header, "Authorization")
	if auth == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(auth))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

func (h *HTTP) caller(r *http.Request) downstream.Caller {
	return downstream.Caller{
		Principal:     h.principal(r),
		Authorization: web.Header(r.Header, "Authorization"),
		Header:        r.Header,
	}
}

// callerOf is caller for a request that claims a session. The usual case, the
// credentials that the session is bound to, needs no digest.
func (h *HTTP) callerOf(s *session, r *http.Request) (downstream.Caller, bool) {
	auth := web.Header(r.Header, "Authorization")
	c := downstream.Caller{Authorization: auth, Header: r.Header, Session: s.rec.ID, Account: s.account}
	bound, principal := s.owner()
	if h.opt.Principal == nil && subtle.ConstantTimeCompare([]byte(auth), []byte(bound)) == 1 {
		c.Principal = principal
		return c, true
	}
	c.Principal = h.principal(r)
	return c, samePrincipal(c.Principal, principal)
}

func samePrincipal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

func (h *HTTP) principal(r *http.Request) string {
	if h.opt.Principal != nil {
		return h.opt.Principal(r)
	}
	return hashPrincipal(r)
}
