package session

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// Rotated finds the session of a message that comes with other credentials than
// those it is bound to: tokens are refreshed, stepped up, or obtained only after
// initialize. That the upstream accepts a token proves a user, not the user
// (H-6, Q6), so who brings such a token may begin calls, which the upstream authorizes, and
// answer their questions, but finds no stream and ends nothing.
//
// An accepted token takes the place of the one that the session is bound to if
// it claims the same issuer and subject, or if the session was opened without. A
// server that never sees it accepts nothing.
func (set *Set) Rotated(r *http.Request, msg *jsonrpc.Message) (*Session, downstream.Caller) {
	c := set.Caller(r)
	if set.opt.Principal != nil || c.Authorization == "" || !rotatedMay(msg) {
		return nil, downstream.Caller{}
	}
	s, err := set.lookup(r, web.Header(r.Header, mcp.HeaderSessionID))
	if err != nil || s == nil {
		return nil, downstream.Caller{}
	}
	c.Session, c.Account = s.rec.ID, s.account
	before := s.rebound.Load()
	switch auth, principal := s.owner(); {
	case set.opt.CredentialsEndHere:
	case auth == "":
		c.Accepted = func() { s.rebind(before, &binding{c.Authorization, c.Principal}) }
	case sameSubject(auth, c.Authorization):
		c.Accepted = func() { s.rebind(before, &binding{c.Authorization, principal}) }
	}
	return s, c
}

// rebind binds the session to newer credentials, unless that happened meanwhile.
func (s *Session) rebind(before, after *binding) {
	if s.rebound.CompareAndSwap(before, after) {
		s.Changed()
	}
}

// rotatedMay reports whether a message is safe with unproven credentials: the
// upstream is asked about each call, and the conversation tells whose questions
// and cancellations are whose. What the bridge serves by itself is not (H-9).
func rotatedMay(msg *jsonrpc.Message) bool {
	return msg.Kind() != jsonrpc.Request || msg.Method == mcp.MethodToolsCall || mcp.IsReadOnly(msg.Method)
}

// sameSubject reports whether two Authorization headers carry JSON web tokens
// that claim the same issuer and subject. The claims are not verified here.
func sameSubject(a, b string) bool {
	subject := subjectOf(a)
	return subject != "" && subject == subjectOf(b)
}

// subjectOf returns issuer and subject of a JSON web token; "" for anything else.
func subjectOf(auth string) string {
	claims := claimsOf(auth)
	issuer, subject := textIn(claims, "iss"), textIn(claims, "sub")
	if issuer == "" || subject == "" {
		return ""
	}
	return issuer + "\x00" + subject
}
