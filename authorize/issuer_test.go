package authorize

import (
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

// issuer is an authorization server that checks what a client must do, and can be
// told to misbehave. It is also the server whose tokens it gives.
type issuer struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	life     time.Duration
	rotates  bool
	resource string            // that its metadata name; empty: its own
	iss      string            // in authorization responses: "", "own", or what to say
	says     bool              // it advertises iss
	broken   int               // status of the token endpoint; 0: it works
	scopes   []string          // scopes_supported of the server
	offline  bool              // offline_access is offered
	wants    string            // scope that the server wants for its request
	meta     map[string]any    // members of the metadata to replace
	clients  map[string]string // redirects by id
	codes    map[string]url.Values
	live     map[string]string // scope by access token
	refresh  map[string]string // scope by refresh token
	device   string            // the code that waits
	agreed   bool
	tabs     int // authorization requests
	joined   int // registrations
	renewed  int
	reused   int // refresh tokens that came twice
	requests []url.Values
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, life: time.Hour, rotates: true, clients: map[string]string{}, codes: map[string]url.Values{}, live: map[string]string{}, refresh: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", i.describeResource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", i.describe)
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /device", i.begin)
	mux.HandleFunc("POST /revoke", i.revoke)
	mux.HandleFunc("POST /mcp", i.serve)
	i.Server = httptest.NewUnstartedServer(mux)
	i.Start()
	t.Cleanup(func() { i.CloseClientConnections(); i.Close(); http.DefaultClient.CloseIdleConnections() })
	return i
}

func (i *issuer) server() string { return i.URL + "/mcp" }

func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// get reads a counter.
func (i *issuer) get(n *int) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return *n
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *issuer) describeResource(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	resource := i.resource
	if resource == "" {
		resource = i.URL + "/mcp"
	}
	reply(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{i.URL}, "scopes_supported": i.scopes})
}

func (i *issuer) describe(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	meta := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"registration_endpoint": i.URL + "/register", "revocation_endpoint": i.URL + "/revoke",
		"device_authorization_endpoint":                  i.URL + "/device",
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic", "private_key_jwt"},
		"authorization_response_iss_parameter_supported": i.says,
	}
	if i.offline {
		meta["scopes_supported"] = []string{"offline_access"}
	}
	maps.Copy(meta, i.meta)
	reply(w, 200, meta)
}

func (i *issuer) register(w http.ResponseWriter, r *http.Request) {
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
	i.joined++
	id := "client-" + rand.Text()
	i.clients[id] = strings.Join(asked.Redirects, " ")
	reply(w, 201, map[string]any{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": "none"})
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tabs++
	i.requests = append(i.requests, q)
	known := slices.Contains(strings.Fields(i.clients[q.Get("client_id")]), q.Get("redirect_uri"))
	if !known || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	switch i.iss {
	case "":
	case "own":
		back.Set("iss", i.URL)
	default:
		back.Set("iss", i.iss)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = append(i.requests, r.PostForm)
	if i.broken != 0 {
		w.WriteHeader(i.broken)
		return
	}
	scope, failure := "", "invalid_grant"
	switch grant := r.PostForm.Get("grant_type"); grant {
	case grantCode:
		asked := i.codes[r.PostForm.Get("code")]
		delete(i.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if asked != nil && base64.RawURLEncoding.EncodeToString(sum[:]) == asked.Get("code_challenge") &&
			asked.Get("resource") == r.PostForm.Get("resource") && asked.Get("redirect_uri") == r.PostForm.Get("redirect_uri") {
			scope, failure = asked.Get("scope"), ""
		}
	case grantRefresh:
		i.renewed++
		token := r.PostForm.Get("refresh_token")
		if old, ok := i.refresh[token]; ok {
			scope, failure = old, ""
			if i.rotates {
				delete(i.refresh, token)
			}
		} else {
			i.reused++
		}
	case grantDevice:
		failure = "authorization_pending"
		if i.agreed && r.PostForm.Get("device_code") == i.device {
			failure = ""
		}
	case grantMachine:
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
	i.live[access], i.refresh[refresh] = scope, scope
	reply(w, 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.life.Seconds()), "refresh_token": refresh, "scope": scope})
}

func (i *issuer) begin(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.device = rand.Text()
	reply(w, 200, map[string]any{"device_code": i.device, "user_code": "WDJB-MJHT", "verification_uri": i.URL + "/enter", "expires_in": 600, "interval": 1})
}

func (i *issuer) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.refresh, r.PostForm.Get("token"))
}

// serve is the MCP endpoint.
func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	scope, ok := i.live[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	metadata := `resource_metadata="` + i.URL + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case !ok:
		w.Header().Set("WWW-Authenticate", "Bearer "+metadata)
		w.WriteHeader(http.StatusUnauthorized)
	case i.wants != "" && !slices.Contains(strings.Fields(scope), i.wants):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+i.wants+`", `+metadata)
		w.WriteHeader(http.StatusForbidden)
	}
}
