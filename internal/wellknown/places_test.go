package wellknown

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A server names where its metadata are: anywhere on its own origin, and elsewhere only what
// can be nothing else.
func TestWhereTheMetadataOfAServerMayBe(t *testing.T) {
	const server = "https://mcp.example.com/mcp"
	for at, fine := range map[string]bool{
		"https://mcp.example.com/any/path?x=1":                                                  true,
		"https://MCP.example.com:443/meta":                                                      true,
		"https://login.example.com/.well-known/oauth-protected-resource":                        true,
		"https://login.example.com/.well-known/oauth-protected-resource/tenant/mcp":             true,
		"https://mcp.example.com:8443/.well-known/oauth-protected-resource":                     true,
		"https://vault.internal/v1/secret":                                                      false,
		"https://vault.internal/v1/secret/.well-known/oauth-protected-resource":                 false,
		"https://vault.internal/.well-known/oauth-protected-resource?x=1":                       false,
		"https://vault.internal/.well-known/oauth-protected-resource?":                          false,
		"https://vault.internal/.well-known/oauth-protected-resource/../../v1/secret":           false,
		"https://vault.internal/.well-known/oauth-protected-resource/%2e%2e/%2E./v1/secret":     false,
		"https://vault.internal/.well-known/oauth-protected-resource/a%2f..%2f..%2f..%2fsecret": false,
		`https://vault.internal/.well-known/oauth-protected-resource/..\..\secret`:              false,
		"https://vault.internal/.well-known/oauth-protected-resources":                          false,
		"https://user@vault.internal/.well-known/oauth-protected-resource":                      false,
		"http://vault.internal/.well-known/oauth-protected-resource":                            false,
		"http://127.0.0.1/.well-known/oauth-protected-resource":                                 false,
	} {
		if err := ResourcePlace(server, at); (err == nil) != fine {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// Whoever may name a place may lead there, too, and nowhere else.
func TestWhereRedirectsOfMetadataMayLead(t *testing.T) {
	for _, test := range []struct {
		follow    func(*http.Request, []*http.Request) error
		from, to  string
		mayFollow bool
	}{
		{FollowResource, "https://mcp.example.com/meta", "https://mcp.example.com/other?x=1", true},
		{FollowResource, "https://mcp.example.com/meta", "https://login.example.com/.well-known/oauth-protected-resource/mcp", true},
		{FollowResource, "https://mcp.example.com/meta", "https://vault.internal/v1/secret", false},
		{FollowResource, "https://mcp.example.com/meta", "https://vault.internal/.well-known/other", false},
		{Follow, "https://login.example.com/.well-known/openid-configuration", "https://tenant.example.com/realm/.well-known/openid-configuration", true},
		{Follow, "https://login.example.com/.well-known/openid-configuration", "https://login.example.com/v1/oidc?x=1", true},
		{Follow, "https://login.example.com/.well-known/openid-configuration", "https://vault.internal/v1/secret", false},
		{Follow, "https://login.example.com/.well-known/openid-configuration", "https://vault.internal/.well-known/secret?x=1", false},
		{Follow, "https://login.example.com/keys", "https://cdn.example.com/keys", true},
	} {
		first, _ := http.NewRequest(http.MethodGet, test.from, nil)
		next, _ := http.NewRequest(http.MethodGet, test.to, nil)
		if err := test.follow(next, []*http.Request{first}); (err == nil) != test.mayFollow {
			t.Errorf("%s to %s: %v", test.from, test.to, err)
		}
	}
}

func TestOnlyMembersOfMetadataAreKept(t *testing.T) {
	got := Members(map[string]int{"resource": 1, "resource_name#fr": 1, "scopes_supported": 1, "data": 1, "password": 1, "Resource": 1})
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"resource", "resource_name#fr", "scopes_supported"}) {
		t.Errorf("kept %q", names)
	}
}

// What a server redirects to may hold secrets in its query, also where it is no URL.
func TestNoReasonHoldsAQuery(t *testing.T) {
	for _, location := range []string{"http://[::1?s3cret", "/%zz?s3cret", "http://h:port/?s3cret", "http:///?s3cret", ":?s3cret", "/x?s3cret"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		}))
		client := s.Client()
		client.CheckRedirect = Follow
		_, err := Fetch(t.Context(), client, s.URL+"/.well-known/x?s3cret", new(any))
		if err == nil || strings.Contains(Reason(err), "s3cret") {
			t.Errorf("%s: %v", location, err)
		}
		s.Close()
	}
}
