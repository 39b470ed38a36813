package authorize

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// elsewhere is a server that nothing of a sign-in may reach, and how often it was reached.
func elsewhere(t *testing.T) (string, *atomic.Int32) {
	t.Helper()
	var reached atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"x","token_type":"Bearer","client_id":"x"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, &reached
}

// What is posted holds the code and its verifier, the refresh token or a secret. An
// authorization server that sends it on does not get it sent on.
func TestWhatIsPostedStaysWithWhomItIsFor(t *testing.T) {
	for _, member := range []string{"token_endpoint", "registration_endpoint", "device_authorization_endpoint"} {
		t.Run(member, func(t *testing.T) {
			other, reached := elsewhere(t)
			door := httptest.NewServer(http.RedirectHandler(other+"/taken", http.StatusTemporaryRedirect))
			t.Cleanup(door.Close)
			i := issuer.New(t)
			i.Meta = map[string]any{member: door.URL}
			a := newAgent(t, i, func(o *Options) {
				if member == "device_authorization_endpoint" {
					o.Grant = Device
				}
			})
			err := call(t, a)
			if err == nil || reached.Load() != 0 {
				t.Errorf("%v; the other place was reached %d times", err, reached.Load())
			}
			if member != "registration_endpoint" && !strings.Contains(err.Error(), "wanted your sign-in sent to another place") {
				t.Errorf("told %v", err)
			}
		})
	}
}

// far is a way to a server that is not on this machine, whose answers are these.
type far map[string]string

func (f far) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	switch text, ok := f[r.URL.String()]; {
	case strings.HasPrefix(text, "to "):
		w.Header().Set("Location", strings.TrimPrefix(text, "to "))
		w.WriteHeader(http.StatusFound)
	case ok:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	case r.URL.Hostname() == "127.0.0.1":
		return http.DefaultTransport.RoundTrip(r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

// A server somewhere has the bridge ask nobody on the person's machine, where programs
// trust whoever is there.
func TestAServerElsewhereHasNothingAskedOnThisMachine(t *testing.T) {
	const server, metadata, login = "https://mcp.example.com/mcp", "https://mcp.example.com/.well-known/oauth-protected-resource/mcp", "https://login.example.com"
	resource := func(issuer string) string {
		text, _ := json.Marshal(map[string]any{"resource": server, "authorization_servers": []string{issuer}})
		return string(text)
	}
	meta := func(member, address string) string {
		all := map[string]any{"issuer": login, "authorization_endpoint": login + "/a", "token_endpoint": login + "/t", "registration_endpoint": login + "/r",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}}
		all[member] = address
		text, _ := json.Marshal(all)
		return string(text)
	}
	const place = login + "/.well-known/oauth-authorization-server"
	for name, answers := range map[string]func(inside string) (challenge string, f far){
		"by its challenge":         func(inside string) (string, far) { return inside, far{} },
		"by a redirect":            func(inside string) (string, far) { return "", far{metadata: "to " + inside} },
		"as authorization server":  func(inside string) (string, far) { return "", far{metadata: resource(inside)} },
		"by the issuer's redirect": func(inside string) (string, far) { return "", far{metadata: resource(login), place: "to " + inside} },
		"for registration": func(inside string) (string, far) {
			return "", far{metadata: resource(login), place: meta("registration_endpoint", inside)}
		},
		"for tokens": func(inside string) (string, far) {
			return "", far{metadata: resource(login), place: meta("token_endpoint", inside)}
		},
		"for the end of logins": func(inside string) (string, far) {
			return "", far{metadata: resource(login), place: meta("revocation_endpoint", inside)}
		},
		"for codes": func(inside string) (string, far) {
			return "", far{metadata: resource(login), place: meta("device_authorization_endpoint", inside)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inside, reached := elsewhere(t)
			challenge, way := answers(inside)
			a, err := New(Options{Server: server, Dir: t.TempDir(), Store: "file", Browser: []string{"true"},
				Resources: &http.Client{Transport: way}, Issuers: &http.Client{Transport: way}})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			refused := Refusal{Status: http.StatusUnauthorized}
			if challenge != "" {
				refused.Challenge = []string{`Bearer resource_metadata="` + challenge + `"`}
			}
			if err := a.Renew(ctx, refused); err == nil || !strings.Contains(err.Error(), "is on this machine, and") || reached.Load() != 0 {
				t.Errorf("told %v; reached %d times", err, reached.Load())
			}
		})
	}
}

// So it is with what a login has kept of an authorization server, which an older bridge may
// not have judged.
func TestWhatALoginKeepsLeadsToNothingOnThisMachine(t *testing.T) {
	const server, login = "https://mcp.example.com/mcp", "https://login.example.com"
	inside, reached := elsewhere(t)
	a, err := New(Options{Server: server, Dir: t.TempDir(), Store: "file", Browser: []string{"true"}, Issuers: &http.Client{Transport: far{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	l := Login{Server: server, Issuer: login, TokenEndpoint: inside, Revocation: inside, Active: true, Renews: true, secrets: secrets{Client: client{ID: "c"}, Access: "a", Refresh: "r"}}
	if err := a.store.save(&l); err != nil {
		t.Fatal(err)
	}
	if _, err := a.exchange(t.Context(), l.TokenEndpoint, l.Issuer, &l.Client, grantRefresh, nil); err == nil || !strings.Contains(err.Error(), "no safe token endpoint") {
		t.Errorf("a renewal is told %v", err)
	}
	had, err := a.SignOut(t.Context())
	if !had || err == nil || !strings.Contains(err.Error(), "is on this machine, and") || a.Login() != nil {
		t.Errorf("signing out is told %v, %v", had, err)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

// An address for what one can do without is left out when it is not safe, as it was before.
func TestAnAuthorizationServerWithoutTLSForTheEndOfLoginsIsUsed(t *testing.T) {
	m := &metadata{DeviceEndpoint: "http://login.example.com/d"}
	m.TokenEndpoint, m.RevocationEndpoint = "https://login.example.com/t", "http://login.example.com/r"
	if err := m.validate("https://login.example.com"); err != nil || m.RevocationEndpoint != "" || m.DeviceEndpoint != "" {
		t.Errorf("%v, %q, %q", err, m.RevocationEndpoint, m.DeviceEndpoint)
	}
}

// A user's name before the host's is read as that of a host: people are led to no such address.
func TestAnAddressWithAUserInItIsNoneToSignInAt(t *testing.T) {
	const issuer = "https://login.example.com"
	for _, at := range []string{"https://login.example.com@evil.example/a", "https://user:pw@evil.example/a"} {
		m := &metadata{}
		m.AuthorizationEndpoint, m.TokenEndpoint = at, issuer+"/t"
		if err := m.validate(issuer); err == nil || !strings.Contains(err.Error(), "has a user in it") || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", at, err)
		}
		if err := wellknown.From(issuer, at); err == nil { // what the code of a device is entered at
			t.Errorf("%s is safe", at)
		}
	}
}

// Over plain http anybody between could read the token: the person learns what to change.
func TestServersWithoutTLSAreNotShownALogin(t *testing.T) {
	a, err := New(Options{Server: "http://192.0.2.1/mcp", Dir: t.TempDir(), Store: "file"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Renew(t.Context(), Refusal{Status: http.StatusUnauthorized}); err == nil || !strings.Contains(err.Error(), "Connect to its https address") {
		t.Errorf("told %v", err)
	}
}

// A server has nothing read in the network of the bridge either: elsewhere there are
// metadata only, wherever it names or leads to.
func TestAServerHasOnlyMetadataReadElsewhere(t *testing.T) {
	const server, metadata, login = "https://mcp.example.com/mcp", "https://mcp.example.com/.well-known/oauth-protected-resource/mcp", "https://login.example.com"
	const inside, place = "https://vault.internal/v1/secret?x=1", login + "/.well-known/oauth-authorization-server"
	for name, test := range map[string]struct {
		challenge string
		answers   far
	}{
		"by its challenge":         {inside, far{}},
		"by a redirect":            {"", far{metadata: "to " + inside}},
		"by the issuer's redirect": {"", far{metadata: `{"resource":"` + server + `","authorization_servers":["` + login + `"]}`, place: "to " + inside}},
	} {
		t.Run(name, func(t *testing.T) {
			var read atomic.Bool
			way := &http.Client{Transport: noting{test.answers, func(r *http.Request) {
				if r.URL.Host == "vault.internal" {
					read.Store(true)
				}
			}}}
			a, err := New(Options{Server: server, Dir: t.TempDir(), Store: "file", Browser: []string{"true"}, Resources: way, Issuers: way})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			refused := Refusal{Status: http.StatusUnauthorized}
			if test.challenge != "" {
				refused.Challenge = []string{`Bearer resource_metadata="` + test.challenge + `"`}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := a.Renew(ctx, refused); err == nil || read.Load() {
				t.Errorf("told %v; read %v", err, read.Load())
			}
		})
	}
}

// noting is a way that is told of what goes it.
type noting struct {
	way  http.RoundTripper
	note func(*http.Request)
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	n.note(r)
	return n.way.RoundTrip(r)
}
