package resource

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

const endpoint = "https://tools.example.com/mcp"

func checking(t *testing.T, s *issuer.Signer, scopes ...string) *Resource {
	t.Helper()
	r := Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Scopes: scopes,
		Issuers: &http.Client{Transport: &http.Transport{}}, Log: zerolog.Nop()})
	t.Cleanup(r.Close)
	return r
}

func bringing(authorization string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

// claims returns those of base with others.
func claims(base, others map[string]any) map[string]any {
	out := maps.Clone(base)
	maps.Copy(out, others)
	return out
}

func TestOnlyTokensForThisEndpointAreTaken(t *testing.T) {
	s, other := issuer.NewSigner(t), issuer.NewSigner(t)
	r := checking(t, s, "tools:call")
	good := s.Claims("ada", endpoint)
	hour := time.Now().Add(-time.Hour).Unix()
	for name, test := range map[string]struct {
		authorization string
		status        int
		says          string
	}{
		"good":                    {"Bearer " + s.Sign(good), 0, ""},
		"one of several":          {"bearer " + s.Sign(claims(good, map[string]any{"aud": []string{"x", endpoint}})), 0, ""},
		"scp as a list":           {"Bearer " + s.Sign(claims(good, map[string]any{"scope": "", "scp": []string{"tools:call"}})), 0, ""},
		"scp as a text":           {"Bearer " + s.Sign(claims(good, map[string]any{"scope": "", "scp": "a tools:call"})), 0, ""},
		"a clock that is behind":  {"Bearer " + s.Sign(claims(good, map[string]any{"exp": time.Now().Add(-skew / 2).Unix()})), 0, ""},
		"none":                    {"", 401, ""},
		"another scheme":          {"Basic YTpi", 401, ""},
		"empty":                   {"Bearer ", 401, ""},
		"a word after it":         {"Bearer " + s.Sign(good) + " x", 401, "no JSON web token"},
		"parted by spaces":        {"Bearer " + strings.Replace(s.Sign(good), ".", ". ", 1), 401, "no JSON web token"},
		"two spaces before it":    {"Bearer  " + s.Sign(good), 401, "no JSON web token"},
		"expired":                 {"Bearer " + s.Sign(claims(good, map[string]any{"exp": hour})), 401, "the token has expired"},
		"not yet":                 {"Bearer " + s.Sign(claims(good, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), 401, "the token is not good yet"},
		"for somebody else":       {"Bearer " + s.Sign(s.Claims("ada", "https://other.example.com/mcp")), 401, "the token is for somebody else"},
		"for the whole origin":    {"Bearer " + s.Sign(s.Claims("ada", "https://tools.example.com")), 401, "the token is for somebody else"},
		"of another issuer":       {"Bearer " + other.Sign(other.Claims("ada", endpoint)), 401, "invalid_token"},
		"in this one's name":      {"Bearer " + other.Sign(good), 401, "invalid_token"},
		"changed":                 {"Bearer " + s.Sign(good) + "x", 401, "invalid_token"},
		"unsigned":                {"Bearer eyJhbGciOiJub25lIn0." + strings.Split(s.Sign(good), ".")[1] + ".", 401, "invalid_token"},
		"opaque":                  {"Bearer opaque", 401, "no JSON web token"},
		"without a subject":       {"Bearer " + s.Sign(claims(good, map[string]any{"sub": ""})), 401, "the token names no subject"},
		"of half a character":     {"Bearer " + s.Sign(claims(good, map[string]any{"sub": json.RawMessage(`"a\ud800"`)})), 401, "the token names no subject"},
		"without the scope":       {"Bearer " + s.Sign(claims(good, map[string]any{"scope": "tools:read"})), 403, `error="insufficient_scope"`},
		"without end":             {"Bearer " + strings.Repeat("x", maxToken+1), 401, "too long"},
		"with quotes in a header": {`Bearer ", error="`, 401, "invalid_token"},
	} {
		refusal := r.Admit(bringing(test.authorization))
		switch {
		case test.status == 0:
			if refusal != nil {
				t.Errorf("%s: %+v", name, refusal)
			}
		case refusal == nil:
			t.Errorf("%s: was taken", name)
		case refusal.Status != test.status || !strings.Contains(refusal.Challenge, test.says) ||
			!strings.Contains(refusal.Challenge, `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`) ||
			!strings.Contains(refusal.Challenge, `scope="tools:call"`):
			t.Errorf("%s: %+v", name, refusal)
		}
	}
}

// Sessions are bound to issuer and subject, not to a token (H-6).
func TestThePrincipalIsTheSubject_H6(t *testing.T) {
	s := issuer.NewSigner(t)
	r := checking(t, s)
	who := func(subject string) string {
		return r.Principal(bringing("Bearer " + s.Sign(s.Claims(subject, endpoint))))
	}
	if first, next := who("ada"), who("ada"); first != next || first == who("grace") || first == "" {
		t.Error("principals are not subjects")
	}
	if a, b := r.Principal(bringing("")), r.Principal(bringing("")); a == b {
		t.Error("nobodies are somebody")
	}
}

// Nobody can have the bridge ask for keys all the time, and an authorization server that
// is down makes no token a bad one.
func TestTheIssuerIsAskedSparingly(t *testing.T) {
	s, other := issuer.NewSigner(t), issuer.NewSigner(t)
	r := checking(t, s)
	forged := other.Claims("ada", endpoint)
	forged["iss"] = s.URL
	for range 20 {
		r.Admit(bringing("Bearer " + other.Sign(forged)))
	}
	s.Set(func() {
		if s.KeysAsked > 2 {
			t.Errorf("the keys were asked for %d times", s.KeysAsked)
		}
	})
	down := issuer.NewSigner(t)
	down.Set(func() { down.Broken = 500 })
	r = checking(t, down)
	for range 3 {
		if refusal := r.Admit(bringing("Bearer " + down.Sign(down.Claims("ada", endpoint)))); refusal == nil || refusal.Status != 503 || refusal.Challenge != "" {
			t.Errorf("while the issuer is down: %+v", refusal)
		}
	}
}

// An issuer elsewhere does not have the bridge look for keys on its machine.
func TestKeysOfAnIssuerElsewhereAreNotOnThisMachine(t *testing.T) {
	asked := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inside.Close()
	way := answering(`{"issuer":"https://login.example.com","jwks_uri":"` + inside.URL + `"}`)
	r := Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: "https://login.example.com", Issuers: &http.Client{Transport: way}, Log: zerolog.Nop()})
	t.Cleanup(r.Close)
	err := r.source.(*checked).tokens.keys.ask()
	if err == nil || !strings.Contains(err.Error(), "is on this machine, and") || asked {
		t.Errorf("they are had: %v; asked %v", err, asked)
	}
}

func TestTheMetadataOfAnEndpointThatChecks(t *testing.T) {
	s := issuer.NewSigner(t)
	r := checking(t, s, "tools:call")
	mux := http.NewServeMux()
	for path, handler := range r.Routes([]string{"/mcp"}, true) {
		mux.Handle(path, handler)
	}
	_, document := get(t, mux, "http://localhost/.well-known/oauth-protected-resource/mcp")
	if document["resource"] != endpoint || document["authorization_servers"].([]any)[0] != s.URL || document["scopes_supported"].([]any)[0] != "tools:call" {
		t.Errorf("got %v", document)
	}
	if _, document := get(t, mux, "http://localhost/.well-known/oauth-authorization-server"); document["token_endpoint"] != s.URL+"/token" {
		t.Errorf("of the issuer: %v", document)
	}
}
