package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
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

// Caller tells who a request acts for that belongs to no session.
func (set *Set) Caller(r *http.Request) downstream.Caller {
	principal := set.Principal(r)
	return downstream.Caller{
		Principal:     principal,
		Party:         party(principal, r),
		Authorization: web.Header(r.Header, "Authorization"),
		Header:        r.Header,
		Transport:     observe.StreamableHTTP,
		HTTP:          observe.HTTPOf(r.ProtoMajor, r.ProtoMinor),
	}
}

// callerOf is Caller for a request that claims a session. The usual case, the
// credentials that the session is bound to, needs no digest.
func (set *Set) callerOf(s *Session, r *http.Request) (downstream.Caller, bool) {
	auth := web.Header(r.Header, "Authorization")
	c := downstream.Caller{Authorization: auth, Header: r.Header, Session: s.rec.ID, Account: s.account, Transport: observe.StreamableHTTP,
		HTTP: observe.HTTPOf(r.ProtoMajor, r.ProtoMinor)}
	bound, principal := s.owner()
	if set.opt.Principal == nil && subtle.ConstantTimeCompare([]byte(auth), []byte(bound)) == 1 {
		c.Principal = principal
		return c, true
	}
	c.Principal = set.Principal(r)
	return c, SamePrincipal(c.Principal, principal)
}

// Party returns whose share of memory and of turns a request takes. Nobody is anonymous
// often: a session costs a stranger nothing, so that all of its address stand for one.
func (set *Set) Party(r *http.Request) string { return party(set.Principal(r), r) }

func party(principal string, r *http.Request) string {
	if principal != "" {
		return principal
	}
	if from := web.Address(r); from != "" {
		return "address " + from // no principal is called so: it has a space
	}
	return ""
}

// SamePrincipal compares two principals in constant time.
func SamePrincipal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// Principal names who a request acts for, opaquely; "" is anonymous.
func (set *Set) Principal(r *http.Request) string {
	if set.opt.Principal != nil {
		return set.opt.Principal(r)
	}
	return hashPrincipal(r)
}
