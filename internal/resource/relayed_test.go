package resource

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an MCP server with metadata, as far as OAuth is concerned.
type server struct {
	*httptest.Server
	documents map[string]string // by path
	asked     atomic.Int32
}

func newServer(t *testing.T) *server {
	s := &server{documents: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		document, ok := s.documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(document, "SELF", s.URL))
	}))
	t.Cleanup(s.Close)
	return s
}

func relay(t *testing.T, s *server, public string, log io.Writer) (*Resource, http.Handler) {
	t.Helper()
	clients := [2]*http.Client{{Transport: &http.Transport{}}, {Transport: &http.Transport{}}}
	r := Relay(RelayOptions{Server: s.URL + "/mcp", Path: "/mcp", Public: public, Servers: clients[0], Issuers: clients[1], Log: zerolog.New(log)})
	t.Cleanup(r.Close)
	mux := http.NewServeMux()
	for path, handler := range r.Routes([]string{"/mcp", "/sse", "/mcp/sse"}, true) {
		mux.Handle(path, handler)
	}
	return r, mux
}

func get(t *testing.T, h http.Handler, url string) (status int, document map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
			t.Fatalf("%s: %v", url, err)
		}
	}
	return w.Code, document
}

// RFC 9728, 3.3: clients compare the resource with the address that they know.
func TestTheMetadataNameTheAddressThatClientsKnow_H3(t *testing.T) {
	for _, test := range []struct{ public, asked, resource string }{
		{"", "http://localhost:8080/.well-known/oauth-protected-resource/mcp", "http://localhost:8080/mcp"},
		{"", "http://localhost:8080/.well-known/oauth-protected-resource", "http://localhost:8080/mcp"},
		{"", "http://localhost:8080/.well-known/oauth-protected-resource/sse", "http://localhost:8080/sse"},
		{"", "https://localhost/.well-known/oauth-protected-resource/mcp/sse", "https://localhost/mcp/sse"},
		{"https://mcp.example.com", "http://10.1.2.3/.well-known/oauth-protected-resource/mcp", "https://mcp.example.com/mcp"},
		{"https://mcp.example.com/", "http://10.1.2.3/.well-known/oauth-protected-resource/sse", "https://mcp.example.com/sse"},
		{"https://mcp.example.com/team/mcp", "http://10.1.2.3/.well-known/oauth-protected-resource/team/mcp", "https://mcp.example.com/team/mcp"},
		{"https://mcp.example.com/team/mcp", "http://10.1.2.3/.well-known/oauth-protected-resource/mcp", "https://mcp.example.com/team/mcp"},
		{"https://mcp.example.com/team/mcp", "http://10.1.2.3/.well-known/oauth-protected-resource/team/mcp/sse", "https://mcp.example.com/team/mcp/sse"},
	} {
		s := newServer(t)
		s.documents["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"SELF/mcp","authorization_servers":["https://login.example.com"],"scopes_supported":["a","b"],"signed_metadata":"x.y.z"}`
		_, h := relay(t, s, test.public, io.Discard)
		status, document := get(t, h, test.asked)
		if status != 200 || document["resource"] != test.resource || len(document["scopes_supported"].([]any)) != 2 || document["signed_metadata"] != nil {
			t.Errorf("%q at %s: %d %v, want the resource %s", test.public, test.asked, status, document, test.resource)
		}
	}
}

func TestChallengesLeadToTheBridgesMetadata_H3(t *testing.T) {
	s := newServer(t)
	own := `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	r, _ := relay(t, s, "https://mcp.example.com", io.Discard)
	request := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	for challenge, want := range map[string]string{
		`Bearer resource_metadata="https://other/x", scope="a b", error="invalid_token"`: `Bearer ` + own + `, scope="a b", error="invalid_token"`,
		`Bearer realm="say \"resource_metadata=no\"", Resource_Metadata = "u"`:           `Bearer realm="say \"resource_metadata=no\"", Resource_Metadata = ` + strings.TrimPrefix(own, "resource_metadata="),
		`DPoP algs="ES256", resource_metadata=https://other/x?y=z, error="e"`:            `DPoP algs="ES256", ` + own + `, error="e"`,
		`Bearer scope="a"`:                     `Bearer scope="a"`,
		`Bearer resource_metadata="never ends`: `Bearer ` + own,
		`Basic realm="x"`:                      `Basic realm="x"`,
		``:                                     ``,
	} {
		if got := r.Challenge(request, []string{"Negotiate", challenge}); got[0] != "Negotiate" || got[1] != want {
			t.Errorf("%s\nbecame %s\nwant   %s", challenge, got[1], want)
		}
	}
}

// Where the bridge stands under the server's own name, that leads to the bridge.
func TestOnlyTheServerItselfIsAsked(t *testing.T) {
	s := newServer(t)
	s.documents["/meta"] = `{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://login.example.com"]}`
	r, h := relay(t, s, "https://mcp.example.com", io.Discard)
	r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), []string{`Bearer resource_metadata="https://mcp.example.com/meta"`})
	if status, document := get(t, h, "http://127.0.0.1/.well-known/oauth-protected-resource/mcp"); status != 200 || document["resource"] != "https://mcp.example.com/mcp" {
		t.Errorf("got %d %v", status, document)
	}
}

// What one client is told, perhaps about its own tenant, is not what all others read.
func TestAChallengeOfOneClientMovesNobodysMetadata(t *testing.T) {
	s := newServer(t)
	for _, tenant := range []string{"all", "one", "next"} {
		s.documents["/"+tenant] = `{"resource":"SELF/mcp","scopes_supported":["` + tenant + `"]}`
	}
	r, h := relay(t, s, "", io.Discard)
	reads := func() any {
		_, document := get(t, h, "http://localhost/.well-known/oauth-protected-resource/mcp")
		return document["scopes_supported"].([]any)[0]
	}
	challenge := func(tenant string) []string {
		return []string{`Bearer resource_metadata="` + s.URL + `/` + tenant + `"`}
	}
	r.Learn(challenge("all"))
	r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), challenge("one"))
	if got := reads(); got != "all" {
		t.Errorf("everybody reads the metadata of %v", got)
	}
	r.Learn(challenge("next"))
	if got := reads(); got != "next" {
		t.Errorf("the server moved its metadata, and everybody reads those of %v", got)
	}
}

// Where the bridge itself is not challenged others sign in as who has no credentials is told, though that be nothing.
func TestWhoHasNoCredentialsIsToldWhereAllSignIn(t *testing.T) {
	s := newServer(t)
	for at, name := range map[string]string{"/tenant": "tenant", "/named": "named", "/.well-known/oauth-protected-resource/mcp": "usual"} {
		s.documents[at] = `{"resource":"SELF/mcp","scopes_supported":["` + name + `"]}`
	}
	tenant := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	tenant.Header.Set("Authorization", "Bearer of-a-tenant")
	for challenge, want := range map[string]string{`Bearer resource_metadata="` + s.URL + `/named"`: "named", `Bearer`: "usual"} {
		r, h := relay(t, s, "", io.Discard)
		for range 2 {
			r.Challenge(tenant, []string{`Bearer resource_metadata="` + s.URL + `/tenant"`})
			r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), []string{challenge})
		}
		r.Challenge(tenant, []string{`Bearer resource_metadata="` + s.URL + `/tenant"`})
		for _, nothing := range [][]string{nil, {`Basic realm="x"`}, {`Bearer`}} { // the last one, too, where there is a name
			r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), nothing)
		}
		_, document := get(t, h, "http://localhost/.well-known/oauth-protected-resource/mcp")
		if got := document["scopes_supported"].([]any)[0]; got != want {
			t.Errorf("%s: everybody reads the metadata of %v", challenge, got)
		}
	}
}

// What is no address says nothing of where the metadata are.
func TestAPlaceThatIsNoneIsLeftOut(t *testing.T) {
	s := newServer(t)
	s.documents["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"SELF/mcp"}`
	for _, place := range []string{"a", "a/b", "?a", "#", "mailto:a", ":a", "http:", "%zz"} {
		r, h := relay(t, s, "", io.Discard)
		r.Learn([]string{`Bearer resource_metadata="` + place + `"`})
		if status, _ := get(t, h, "http://localhost/.well-known/oauth-protected-resource/mcp"); status != http.StatusOK {
			t.Errorf("%s: %d", place, status)
		}
	}
}

// A server that says that it is somebody else: clients refuse that, as they would
// without the bridge, which must not hide it.
func TestASomebodyElsesNameIsNotHidden(t *testing.T) {
	s := newServer(t)
	s.documents["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"https://evil.example.com/mcp"}`
	var log strings.Builder
	_, h := relay(t, s, "", &log)
	for range 2 {
		if _, document := get(t, h, "http://localhost/.well-known/oauth-protected-resource/mcp"); document["resource"] != "https://evil.example.com/mcp" {
			t.Errorf("got %v", document)
		}
	}
	if strings.Count(log.String(), "auth.mode agent or terminate") != 1 {
		t.Errorf("the log says %q", log.String())
	}
}

// Clients of 2025-03-26 know no metadata of resources.
func TestOldClientsFindTheAuthorizationServer_H3(t *testing.T) {
	issuer := newServer(t)
	issuer.documents["/.well-known/oauth-authorization-server/tenant"] = `{"issuer":"SELF/tenant","token_endpoint":"SELF/token"}`
	s := newServer(t)
	s.documents["/.well-known/oauth-protected-resource"] = `{"resource":"SELF","authorization_servers":["` + issuer.URL + `/tenant"]}`
	_, h := relay(t, s, "", io.Discard)
	for _, at := range []string{"", "/mcp"} {
		if status, document := get(t, h, "http://localhost/.well-known/oauth-authorization-server"+at); status != 200 || document["token_endpoint"] != issuer.URL+"/token" {
			t.Errorf("at %q: %d %v", at, status, document)
		}
	}

	old := newServer(t) // its own authorization server
	old.documents["/.well-known/oauth-authorization-server"] = `{"issuer":"SELF","token_endpoint":"SELF/token"}`
	_, h = relay(t, old, "", io.Discard)
	if status, document := get(t, h, "http://localhost/.well-known/oauth-authorization-server"); status != 200 || document["issuer"] != old.URL {
		t.Errorf("of a server without metadata: %d %v", status, document)
	}
}

func TestWhatThereIsNotAndWhatCannotBeHad(t *testing.T) {
	s := newServer(t)
	_, h := relay(t, s, "", io.Discard)
	for _, at := range []string{"oauth-protected-resource/mcp", "oauth-authorization-server"} {
		if status, _ := get(t, h, "http://localhost/.well-known/"+at); status != http.StatusNotFound {
			t.Errorf("%s of a server without: %d", at, status)
		}
	}
	s = newServer(t)
	s.documents["/.well-known/oauth-protected-resource/mcp"] = `nonsense`
	_, h = relay(t, s, "", io.Discard)
	if status, _ := get(t, h, "http://localhost/.well-known/oauth-protected-resource/mcp"); status != http.StatusBadGateway {
		t.Errorf("of a server with nonsense: %d", status)
	}
	liar := newServer(t)
	liar.documents["/.well-known/oauth-authorization-server"] = `{"issuer":"https://other.example.com"}`
	_, h = relay(t, liar, "", io.Discard)
	if status, _ := get(t, h, "http://localhost/.well-known/oauth-authorization-server"); status != http.StatusBadGateway {
		t.Errorf("of an issuer that names another: %d", status)
	}
}

func TestPagesOfAnyOriginMayReadMetadata(t *testing.T) {
	s := newServer(t)
	s.documents["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"SELF/mcp"}`
	_, h := relay(t, s, "", io.Discard)
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 204, "POST": 405} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost/.well-known/oauth-protected-resource/mcp", nil))
		if w.Code != status || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

// A server elsewhere does not have the bridge read what is on its machine.
func TestAServerElsewhereHasNothingReadOnThisMachine(t *testing.T) {
	inside := newServer(t)
	inside.documents["/.well-known/oauth-authorization-server"] = `{"issuer":"SELF"}`
	way := answering(`{"resource":"https://mcp.example.com/mcp","authorization_servers":["` + inside.URL + `"]}`)
	r := Relay(RelayOptions{Server: "https://mcp.example.com/mcp", Path: "/mcp", Servers: &http.Client{Transport: way}, Issuers: &http.Client{Transport: &http.Transport{}}, Log: zerolog.Nop()})
	t.Cleanup(r.Close)
	mux := http.NewServeMux()
	for path, handler := range r.Routes([]string{"/mcp"}, true) {
		mux.Handle(path, handler)
	}
	if status, _ := get(t, mux, "http://localhost/.well-known/oauth-authorization-server"); status == http.StatusOK || inside.asked.Load() != 0 {
		t.Errorf("HTTP %d; asked %d times", status, inside.asked.Load())
	}
}

// answering is a way to a server that says the same everywhere.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

// Where a client's Host is the place that a challenge names, that place is not asked: it may be
// the bridge. What comes of that is for clients with that Host only.
func TestAHostOfOneClientSpoilsNothingForOthers(t *testing.T) {
	s := newServer(t)
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			_, _ = io.WriteString(w, `{"resource":"`+s.URL+`/mcp","authorization_servers":["https://`+r.Host+`"]}`)
		case "/.well-known/oauth-authorization-server":
			_, _ = io.WriteString(w, `{"issuer":"https://`+r.Host+`"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(elsewhere.Close)
	r := Relay(RelayOptions{Server: s.URL + "/mcp", Path: "/mcp", Servers: elsewhere.Client(), Issuers: elsewhere.Client(), Log: zerolog.Nop()})
	t.Cleanup(r.Close)
	mux := http.NewServeMux()
	for path, handler := range r.Routes([]string{"/mcp"}, true) {
		mux.Handle(path, handler)
	}
	host := strings.TrimPrefix(elsewhere.URL, "https://")
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"} {
		r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), []string{`Bearer resource_metadata="` + elsewhere.URL + `/.well-known/oauth-protected-resource/mcp"`})
		for _, asker := range []struct {
			host   string
			status int
		}{{host, 404}, {"bridge.example.com", 200}, {host, 404}, {"other.example.com", 200}} {
			if status, document := get(t, mux, "http://"+asker.host+path); status != asker.status {
				t.Errorf("%s, %s: %d %v", asker.host, path, status, document)
			}
		}
		asked := s.asked.Load()
		get(t, mux, "http://third.example.com"+path)
		if s.asked.Load() != asked {
			t.Errorf("%s is read anew for each Host", path)
		}
	}
}
