package legacy

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// binding is whose session it is, once that is no longer who opened it.
type binding struct{ auth, principal string }

// owner returns the credentials that the session is bound to and the principal
// that they stand for.
func (s *session) owner() (auth, principal string) {
	if b := s.rebound.Load(); b != nil {
		return b.auth, b.principal
	}
	return s.auth, s.rec.Principal
}

// rotated finds the session of a message that comes with other credentials than
// those it is bound to: tokens are refreshed, stepped up, or obtained only after
// initialize. That the upstream accepts a token proves a user, not the user
// (H-6, Q6), so who brings such a token may begin calls, which the upstream authorizes, and
// answer their questions, but finds no stream and ends nothing.
//
// An accepted token takes the place of the one that the session is bound to if
// it claims the same issuer and subject, or if the session was opened without. A
// server that never sees it accepts nothing.
func (h *HTTP) rotated(r *http.Request, msg *jsonrpc.Message) (*session, downstream.Caller) {
	c := h.caller(r)
	if h.opt.Principal != nil || c.Authorization == "" || !rotatedMay(msg) {
		return nil, downstream.Caller{}
	}
	s, err := h.lookup(r, web.Header(r.Header, mcp.HeaderSessionID))
	if err != nil || s == nil {
		return nil, downstream.Caller{}
	}
	c.Session, c.Account = s.rec.ID, s.account
	before := s.rebound.Load()
	switch auth, principal := s.owner(); {
	case h.opt.CredentialsEndHere:
	case auth == "":
		c.Accepted = func() { s.rebind(before, &binding{c.Authorization, c.Principal}) }
	case sameSubject(auth, c.Authorization):
		c.Accepted = func() { s.rebind(before, &binding{c.Authorization, principal}) }
	}
	return s, c
}

// rebind binds the session to newer credentials, unless that happened meanwhile.
func (s *session) rebind(before, after *binding) {
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
	issuer, ok := rawjson.Text(rawjson.Get(claims, "iss"))
	subject, okSubject := rawjson.Text(rawjson.Get(claims, "sub"))
	if !ok || !okSubject || issuer == "" || subject == "" {
		return ""
	}
	return issuer + "\x00" + subject
}

// clockSkew is how far the clock of a token's issuer may be behind ours.
const clockSkew = time.Minute

// expiryOf returns when the time of credentials is over; zero: that is unknown, or was
// so before they were taken, which is left to the upstream to judge.
func expiryOf(auth string) time.Time {
	seconds, ok := rawjson.Int(rawjson.Get(claimsOf(auth), "exp"))
	expires := time.Unix(seconds, 0).Add(clockSkew)
	if !ok || !expires.After(time.Now()) {
		return time.Time{}
	}
	return expires
}

// claimsOf returns what a JSON web token claims; nil for anything else, as tokens
// are opaque to all but their issuer and resource. Nothing is verified here.
func claimsOf(auth string) []byte {
	scheme, token, _ := strings.Cut(auth, " ")
	parts := strings.Split(token, ".")
	if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 {
		return nil
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || rawjson.Validate(claims) != nil {
		return nil
	}
	return claims
}
