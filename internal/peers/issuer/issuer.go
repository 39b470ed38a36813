// Package issuer is an authorization server for tests, together with the MCP server
// whose tokens it gives. It checks what a client must do, and can be told to
// misbehave.
package issuer

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Issuer is such a server. Fields are read and changed in Set, once it runs.
type Issuer struct {
	*httptest.Server
	t *testing.T
	// MCP serves requests with a token that will do; nil answers 200.
	MCP http.Handler

	mu       sync.Mutex
	Life     time.Duration
	Rotates  bool
	Resource string            // that its metadata name; empty: its own
	Iss      string            // in authorization responses: "", "own", or what to say
	Says     bool              // it advertises iss
	Declines bool              // the person does
	Broken   int               // status of the token endpoint; 0: it works
	Scopes   []string          // scopes_supported of the server
	Offline  bool              // offline_access is offered
	Wants    string            // scope that the server wants for its request
	Meta     map[string]any    // members of the metadata to replace
	clients  map[string]string // redirects by id
	codes    map[string]url.Values
	Live     map[string]string // scope by access token
	Refresh  map[string]string // scope by refresh token
	device   string            // the code that waits
	Interval int64             // at which to ask about it, in seconds; 0: 1
	Agreed   bool
	Tabs     int // authorization requests
	Joined   int // registrations
	Renewed  int
	Reused   int // refresh tokens that came twice
	Requests []url.Values
}

// New starts an Issuer, which ends with the test.
func New(t *testing.T) *Issuer {
	i := &Issuer{t: t, Life: time.Hour, Rotates: true, clients: map[string]string{}, codes: map[string]url.Values{}, Live: map[string]string{}, Refresh: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", i.describeResource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", i.describe)
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /device", i.begin)
	mux.HandleFunc("POST /revoke", i.revoke)
	mux.HandleFunc("/mcp", i.serve)
	i.Server = httptest.NewUnstartedServer(mux)
	i.Start()
	t.Cleanup(func() { i.CloseClientConnections(); i.Close(); http.DefaultClient.CloseIdleConnections() })
	return i
}

// Endpoint is the URL of the MCP server.
func (i *Issuer) Endpoint() string { return i.URL + "/mcp" }

// Set runs f while no request is served.
func (i *Issuer) Set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// Get reads a counter.
func (i *Issuer) Get(n *int) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return *n
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *Issuer) describeResource(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	resource := i.Resource
	if resource == "" {
		resource = i.URL + "/mcp"
	}
	reply(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{i.URL}, "scopes_supported": i.Scopes})
}

func (i *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	meta := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"registration_endpoint": i.URL + "/register", "revocation_endpoint": i.URL + "/revoke",
		"device_authorization_endpoint":                  i.URL + "/device",
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic", "private_key_jwt"},
		"authorization_response_iss_parameter_supported": i.Says,
	}
	if i.Offline {
		meta["scopes_supported"] = []string{"offline_access"}
	}
	maps.Copy(meta, i.Meta)
	reply(w, 200, meta)
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Type      string   `json:"application_type"`
		Grants    []string `json:"grant_types"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	if asked.Type != "native" || !slices.Contains(asked.Grants, "refresh_token") {
		i.t.Errorf("registered as %+v", asked)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Joined++
	id := "client-" + rand.Text()
	i.clients[id] = strings.Join(asked.Redirects, " ")
	reply(w, 201, map[string]any{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": "none"})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Tabs++
	i.Requests = append(i.Requests, q)
	known := slices.Contains(strings.Fields(i.clients[q.Get("client_id")]), q.Get("redirect_uri"))
	if !known || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if i.Declines {
		back = url.Values{"error": {"access_denied"}, "state": {q.Get("state")}}
	}
	switch i.Iss {
	case "":
	case "own":
		back.Set("iss", i.URL)
	default:
		back.Set("iss", i.Iss)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Requests = append(i.Requests, r.PostForm)
	if i.Broken != 0 {
		w.WriteHeader(i.Broken)
		return
	}
	scope, failure := "", "invalid_grant"
	switch grant := r.PostForm.Get("grant_type"); grant {
	case "authorization_code":
		asked := i.codes[r.PostForm.Get("code")]
		delete(i.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if asked != nil && base64.RawURLEncoding.EncodeToString(sum[:]) == asked.Get("code_challenge") &&
			asked.Get("resource") == r.PostForm.Get("resource") && asked.Get("redirect_uri") == r.PostForm.Get("redirect_uri") {
			scope, failure = asked.Get("scope"), ""
		}
	case "refresh_token":
		i.Renewed++
		token := r.PostForm.Get("refresh_token")
		if old, ok := i.Refresh[token]; ok {
			scope, failure = old, ""
			if i.Rotates {
				delete(i.Refresh, token)
			}
		} else {
			i.Reused++
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		failure = "authorization_pending"
		if i.Agreed && r.PostForm.Get("device_code") == i.device {
			failure = ""
		}
	case "client_credentials":
		id, secret, basic := r.BasicAuth()
		if basic && id == "machine" && secret == "hush" || r.PostForm.Get("client_assertion") != "" {
			scope, failure = r.PostForm.Get("scope"), ""
		} else {
			failure = "invalid_client"
		}
	}
	if failure != "" {
		reply(w, 400, map[string]any{"error": failure})
		return
	}
	access, refresh := rand.Text(), rand.Text()
	i.Live[access], i.Refresh[refresh] = scope, scope
	reply(w, 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.Life.Seconds()), "refresh_token": refresh, "scope": scope})
}

func (i *Issuer) begin(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.device = rand.Text()
	reply(w, 200, map[string]any{"device_code": i.device, "user_code": "WDJB-MJHT", "verification_uri": i.URL + "/enter", "expires_in": 600, "interval": cmp.Or(i.Interval, 1)})
}

func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.Refresh, r.PostForm.Get("token"))
}

// serve is the MCP endpoint.
func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	if i.admit(w, r) && i.MCP != nil {
		i.MCP.ServeHTTP(w, r)
	}
}

// admit reports whether a request has a token with the scopes that are wanted.
func (i *Issuer) admit(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	scope, ok := i.Live[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	metadata := `resource_metadata="` + i.URL + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case !ok:
		w.Header().Set("WWW-Authenticate", "Bearer "+metadata)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	case i.Wants != "" && !slices.Contains(strings.Fields(scope), i.Wants):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+i.Wants+`", `+metadata)
		w.WriteHeader(http.StatusForbidden)
		return false
	}
	return true
}
