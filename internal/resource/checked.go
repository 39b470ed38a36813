package resource

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// CheckOptions say whose tokens an endpoint takes that checks them itself. Issuer, Path,
// Issuers, and Audience or Public are required.
type CheckOptions struct {
	// Path is that of the endpoint, Public the address under which clients know it, or
	// only its origin.
	Path, Public string
	// Issuer is the authorization server.
	Issuer string
	// Audience lists for whom tokens may be; empty: for Public.
	Audience []string
	// Scopes are those that every token must have.
	Scopes []string
	// Issuers asks the authorization server.
	Issuers *http.Client
	// Keys are where the issuer's keys are kept; nil: this endpoint is alone with them. Trust names by
	// what the issuer is known there, like the certificates that Issuers trusts.
	Keys  *Keys
	Trust string
	Log   zerolog.Logger
}

// Check returns the resource of a bridge at which clients' tokens end.
func Check(opt CheckOptions) *Resource {
	opt.Public = PublicAddress(opt.Public, opt.Path)
	if len(opt.Audience) == 0 {
		opt.Audience = []string{opt.Public}
	}
	if opt.Keys == nil {
		opt.Keys = NewKeys()
	}
	return &Resource{public: opt.Public, path: opt.Path, source: &checked{CheckOptions: opt, tokens: newTokens(&opt)}}
}

// checked judges tokens, and says where to get them.
type checked struct {
	CheckOptions
	tokens  *tokens
	issuers memory[json.RawMessage]
}

// describe implements source.
func (s *checked) describe(_ *http.Request, own string) (map[string]json.RawMessage, error) {
	document := with(with(with(map[string]json.RawMessage{}, "resource", own), "authorization_servers", []string{s.Issuer}), "bearer_methods_supported", []string{"header"})
	if len(s.Scopes) > 0 {
		document = with(document, "scopes_supported", s.Scopes)
	}
	return document, nil
}

// issuer implements source.
func (s *checked) issuer(r *http.Request) (json.RawMessage, error) {
	return s.issuers.get(r.Context(), func(ctx context.Context) (json.RawMessage, error) { return readIssuer(ctx, s.Issuers, s.Issuer) })
}

func (s *checked) close() {
	s.tokens.close()
	s.Issuers.CloseIdleConnections()
}

// Refusal is what a request without the right token is answered.
type Refusal struct {
	Status    int // 401, 403, or 503 when tokens cannot be judged at present
	Challenge string
	Reason    string
}

// Checks reports whether tokens are judged here.
func (s *Resource) Checks() bool {
	_, ok := s.source.(*checked)
	return ok
}

// Admit judges the token of a request; nil: it will do. It may only be called where
// Checks says so.
func (s *Resource) Admit(r *http.Request) *Refusal {
	c := s.source.(*checked)
	who, err := c.tokens.judge(r.Header.Get("Authorization"))
	if err == nil && who.has(c.Scopes) {
		return nil
	}
	params := []string{`resource_metadata="` + metadataAddress(s.address(r, r.URL.Path)) + `"`}
	if len(c.Scopes) > 0 {
		params = append(params, `scope="`+strings.Join(c.Scopes, " ")+`"`)
	}
	refusal := &Refusal{Status: http.StatusUnauthorized, Reason: "a token of " + c.Issuer + " is needed"}
	switch {
	case err == nil:
		refusal.Status, refusal.Reason = http.StatusForbidden, "the token lacks scopes"
		params = append(params, `error="insufficient_scope"`)
	case err.unavailable:
		return &Refusal{Status: http.StatusServiceUnavailable, Reason: err.text}
	case err.text != "":
		refusal.Reason = err.text
		params = append(params, `error="invalid_token"`, `error_description="`+err.text+`"`)
	}
	refusal.Challenge = "Bearer " + strings.Join(params, ", ")
	return refusal
}

// Withdrawn returns what tells, for as long as something lasts that was opened with the Authorization header of an admitted
// request, whether the key is published no more under which its token was good. It asks nobody, and costs next to nothing.
func (s *Resource) Withdrawn(authorization string) (withdrawn func() bool) {
	tokens := s.source.(*checked).tokens
	who, bad := tokens.judge(authorization)
	if bad != nil { // it was admitted a moment ago
		return func() bool { return true }
	}
	by := who.by // and nothing else of it is kept
	var seen atomic.Uint64
	seen.Store(by.version) // the newest version in which it was found
	return func() bool {
		known := tokens.keys.known.Load()
		switch {
		case known.version == seen.Load():
			return false
		case !known.has(&by):
			return true
		}
		seen.Store(known.version)
		return false
	}
}

// Principal names whom an admitted request acts for: the issuer's subject, whatever
// token stands for it at present (H-6).
func (s *Resource) Principal(r *http.Request) string {
	who, err := s.source.(*checked).tokens.judge(r.Header.Get("Authorization"))
	if err != nil {
		return rand.Text() // it was admitted a moment ago: nobody's, then
	}
	return who.principal
}
