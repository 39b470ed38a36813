package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
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
		Tenant:        set.tenant(principal, r),
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
	owner := s.owner()
	c.Also = owner.also
	if set.opt.Principal == nil && subtle.ConstantTimeCompare([]byte(auth), []byte(owner.auth)) == 1 {
		c.Principal = owner.principal
		c.Tenant = s.tenant(owner.principal, auth)
		return c, true
	}
	c.Principal = set.Principal(r)
	if !SamePrincipal(c.Principal, owner.principal) {
		return c, false
	}
	c.Tenant = s.tenant(owner.principal, auth)
	return c, true
}

// Sharing returns what tells whose share each request of a connection takes that is a session,
// and has what its account holds counted there, too.
func (set *Set) Sharing(r *http.Request, account *budget.Account) func() string {
	principal, share := set.Principal(r), set.Tenant(r)
	if principal == "" || share == principal {
		return func() string { return share }
	}
	auth, own := web.Header(r.Header, "Authorization"), new(atomic.Bool)
	return func() string {
		if !set.vouched(auth) {
			return share
		}
		if !own.Swap(true) {
			account.Move(principal)
		}
		return principal
	}
}

// Named returns the principal of a request if it is vouched for, and otherwise, when it
// brings credentials at all, the address that stands for all who do so from there.
func (set *Set) Named(r *http.Request) string {
	if principal := set.Principal(r); principal != "" {
		return set.tenant(principal, r)
	}
	return ""
}

// Vouched reports whether the credentials of a request are.
func (set *Set) Vouched(r *http.Request) bool {
	return set.vouched(web.Header(r.Header, "Authorization"))
}

// Tenant returns whose share of memory and of turns a request takes. Sessions, and
// credentials that nobody has looked at, cost a stranger nothing, so that all who are not
// vouched for and come from one address stand for one.
func (set *Set) Tenant(r *http.Request) string { return set.tenant(set.Principal(r), r) }

func (set *Set) tenant(principal string, r *http.Request) string {
	if principal != "" && set.Vouched(r) {
		return principal
	}
	return web.Stranger(r.RemoteAddr)
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

// actorOf is who a session is of, where no request of theirs is at hand.
func actorOf(s *Session) downstream.Caller {
	bound := s.owner()
	return downstream.Caller{Authorization: bound.auth, Principal: bound.principal, Also: bound.also, Session: s.rec.ID, Account: s.account}
}
