package authorize

import (
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpbridge/bridge/internal/clip"
)

// Refusal is a response with which the server refused a request's credentials.
type Refusal struct {
	// Authorization is the header that the request was sent with; empty for none.
	Authorization string
	Status        int
	// Challenge has the values of WWW-Authenticate.
	Challenge []string
	// Shown says that whoever was refused shows the page to the person: no browser is to
	// be opened for it.
	Shown bool
}

// challenge is what a refusal says about tokens that would do.
type challenge struct {
	metadata string   // URL of the protected resource's metadata
	scopes   []string // wanted for the request
	code     string   // the error
}

// read merges the challenges of a refusal. A malformed header is none: the
// well-known places are left to look at.
func (r *Refusal) read() (c challenge) {
	for _, value := range r.Challenge {
		parsed, err := oauthex.ParseWWWAuthenticate([]string{value})
		if err != nil {
			continue
		}
		for _, one := range parsed {
			c.merge(one)
		}
	}
	return c
}

func (c *challenge) merge(one oauthex.Challenge) {
	if one.Scheme != "bearer" && one.Scheme != "dpop" {
		return
	}
	if c.metadata == "" {
		c.metadata = one.Params["resource_metadata"]
	}
	if c.scopes == nil && one.Params["scope"] != "" {
		c.scopes = bounded(strings.Fields(clip.Printable(one.Params["scope"])))
	}
	if c.code == "" {
		c.code = one.Params["error"]
	}
}

// Mendable reports whether other credentials could help: a 403 is the server's
// last word unless it is about scopes.
func (r *Refusal) Mendable() bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden && r.read().code == "insufficient_scope"
}

// wantsMore reports whether the login is good, but for too few rights.
func (r *Refusal) wantsMore() bool { return r.Status == http.StatusForbidden }

// union returns the scopes of both lists, those of the first in front.
func union(a, b []string) []string {
	all := slices.Clone(a)
	has := make(map[string]bool, len(a))
	for _, scope := range a {
		has[scope] = true
	}
	for _, scope := range b {
		if !has[scope] {
			has[scope], all = true, append(all, scope)
		}
	}
	return all
}

// maxScopes bounds the scopes of one sign-in, in bytes: they are in the address of its page, and are kept.
const maxScopes = 4 << 10

// bounded returns as many of the first scopes as there is room for.
func bounded(scopes []string) []string {
	size := 0
	for n, scope := range scopes {
		if size += len(scope) + 1; size > maxScopes {
			return scopes[:n:n]
		}
	}
	return scopes
}

// covers reports whether all of the wanted scopes are among those.
func covers(those, wanted []string) bool { return len(union(those, wanted)) == len(those) }
