package wellknown

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// ErrNoPlace is what ResourcePlace says of an address at which no metadata of a server are
// looked for.
var ErrNoPlace = errors.New("it is at another origin, and no address for metadata")

// ResourcePlace refuses addresses at which the metadata of a server are not to be looked for,
// though it names them. On its own origin every path will do. Elsewhere only one that can be
// nothing but metadata (RFC 9728, 3.1), and that takes no parameter: else a server would choose what
// the bridge reads in its operator's network.
func ResourcePlace(server, at string) error {
	if err := From(server, at); err != nil || SameOrigin(server, at) {
		return err
	}
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || !below(u.EscapedPath(), Resource) {
		return ErrNoPlace
	}
	return nil
}

// below reports whether a path is a base or leads below it, by no detour.
func below(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	if !ok || rest != "" && rest[0] != '/' {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if plain, err := url.PathUnescape(part); err != nil || plain == "." || plain == ".." || strings.ContainsAny(plain, `/\`) {
			return false
		}
	}
	return true
}

// SameOrigin reports whether two URLs lead to the same scheme, host and port.
func SameOrigin(a, b string) bool {
	one, err := url.Parse(a)
	other, err2 := url.Parse(b)
	return err == nil && err2 == nil && one.Host != "" && originOf(one) == originOf(other)
}

// originOf writes an origin in one way only.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// FollowResource is Follow for the metadata of a server: another origin is gone to as if the
// server had named it.
func FollowResource(r *http.Request, via []*http.Request) error {
	if err := Follow(r, via); err != nil {
		return err
	}
	return ResourcePlace(via[0].URL.String(), r.URL.String())
}

// Members returns those members of the metadata of a protected resource that have a meaning
// (RFC 9728, 2, and the registry that it founds). Nothing else that was read is handed on.
func Members[V any](document map[string]V) map[string]V {
	if document == nil {
		return nil
	}
	known := map[string]V{}
	for name, value := range document {
		plain, _, _ := strings.Cut(name, "#") // "resource_name#fr": in a language
		if resourceMembers[plain] {
			known[name] = value
		}
	}
	return known
}

var resourceMembers = map[string]bool{
	"resource": true, "authorization_servers": true, "jwks_uri": true, "scopes_supported": true, "bearer_methods_supported": true,
	"resource_signing_alg_values_supported": true, "resource_name": true, "resource_documentation": true, "resource_policy_uri": true,
	"resource_tos_uri": true, "tls_client_certificate_bound_access_tokens": true, "authorization_details_types_supported": true,
	"dpop_signing_alg_values_supported": true, "dpop_bound_access_tokens_required": true, "signed_metadata": true,
}
