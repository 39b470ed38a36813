package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/authorize"
)

// vendor is an authorization server with its own ideas, and an MCP server that takes its
// tokens.
type vendor struct {
	*httptest.Server
	path     string         // of the issuer
	metadata map[string]any // besides the endpoints
	scopes   []string       // that the MCP server names
	secret   string         // of the client; "": it has none
	// judge says why a request for authorization or a token is refused; "": it is not.
	judge func(q url.Values, token bool) string
	// renews says whether what was asked for brings a refresh token.
	renews func(q url.Values) bool
	// takes is the kind of token that the MCP server takes, "access" or "id".
	takes string

	asked  url.Values
	tokens map[string]string // kinds by token

	registered, free string // the port of the recipe's redirect address, and the one it has here
}

// refuses judges a request as if the recipe's port were free on this machine.
func (v *vendor) refuses(q url.Values, token bool) string {
	q = maps.Clone(q)
	if v.registered != "" {
		q.Set("redirect_uri", strings.Replace(q.Get("redirect_uri"), "localhost:"+v.free+"/", "localhost:"+v.registered+"/", 1))
	}
	return v.judge(q, token)
}

// recipeIssuer is the vendor's own authorization server in a recipe.
var recipeIssuer = regexp.MustCompile(`issuer: \S+`)

var redirectPort = regexp.MustCompile(`localhost:(\d+)/`)

// elsewhere moves the recipe's redirect address to a port that is free.
func (v *vendor) elsewhere(t *testing.T, settings string) string {
	t.Helper()
	v.registered, v.free = "", ""
	found := redirectPort.FindStringSubmatch(settings)
	if found == nil {
		return settings
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, v.free, _ = net.SplitHostPort(l.Addr().String())
	v.registered = found[1]
	return strings.ReplaceAll(settings, found[0], "localhost:"+v.free+"/")
}

func (v *vendor) start(t *testing.T) {
	t.Helper()
	v.tokens = map[string]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"resource": v.URL + "/mcp", "authorization_servers": []string{v.URL + v.path}, "scopes_supported": v.scopes})
	})
	mux.HandleFunc("GET "+strings.TrimSuffix(v.path, "/")+"/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		document := map[string]any{"issuer": v.URL + v.path, "authorization_endpoint": v.URL + "/o/authorize", "token_endpoint": v.URL + "/o/token",
			"response_types_supported": []string{"code"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post", "client_secret_basic"}}
		for name, value := range v.metadata {
			if name == "registration_endpoint" {
				value = v.URL + value.(string)
			}
			document[name] = value
		}
		say(w, 200, document)
	})
	mux.HandleFunc("POST /o/register", func(w http.ResponseWriter, _ *http.Request) { say(w, 403, map[string]any{"error": "Forbidden"}) })
	mux.HandleFunc("GET /o/authorize", v.authorize)
	mux.HandleFunc("POST /o/token", v.token)
	v.Server = httptest.NewServer(mux)
	t.Cleanup(func() { v.CloseClientConnections(); v.Close() })
}

func say(w http.ResponseWriter, status int, document map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func (v *vendor) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if why := v.refuses(q, false); why != "" || q.Get("client_id") != "CLIENT-ID" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "no page to sign in at: "+why, http.StatusBadRequest)
		return
	}
	v.asked = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"the code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (v *vendor) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	why := v.refuses(r.PostForm, true)
	if why != "" || id != "CLIENT-ID" || secret != v.secret || r.PostForm.Get("code") != "the code" || challenge != v.asked.Get("code_challenge") {
		say(w, 400, map[string]any{"error": "invalid_request", "error_description": why})
		return
	}
	access, identity := rand.Text(), rand.Text()
	v.tokens[access], v.tokens[identity] = "access", "id"
	answer := map[string]any{"access_token": access, "id_token": identity, "token_type": "Bearer", "expires_in": 3600}
	if v.renews(v.asked) {
		answer["refresh_token"] = rand.Text()
	}
	say(w, 200, answer)
}

func always(url.Values) bool { return true }

// exactly refuses other redirect addresses than the one that was registered.
func exactly(registered string) func(url.Values, bool) string {
	return func(q url.Values, _ bool) string {
		if q.Get("redirect_uri") != registered {
			return "redirect_uri " + q.Get("redirect_uri") + " is not registered"
		}
		return ""
	}
}

func hasScope(q url.Values, scope string) bool {
	return slices.Contains(strings.Fields(q.Get("scope")), scope)
}

var s256 = map[string]any{"code_challenge_methods_supported": []string{"plain", "S256"}}

// vendors are servers as their documentation and their users' reports describe them.
var vendors = map[string]*vendor{
	"Entra": {path: "/TENANT/v2.0", takes: "access", scopes: []string{"tools"}, renews: func(q url.Values) bool { return hasScope(q, "offline_access") },
		judge: func(q url.Values, token bool) string {
			back, err := url.Parse(q.Get("redirect_uri"))
			switch {
			case q.Has("resource"):
				return "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes."
			case !token && q.Get("scope") == "":
				return "AADSTS900144: The request body must contain the following parameter: 'scope'."
			case !token && !hasScope(q, "api://APP/.default"):
				return "AADSTS650053: asked for a scope that doesn't exist on the resource."
			case err != nil || back.Hostname() != "localhost" || back.Path != "/callback":
				return "AADSTS50011: The redirect URI does not match." // the port does not count
			}
			return ""
		}},
	"Google": {metadata: s256, takes: "access", secret: "hush",
		renews: func(q url.Values) bool { return q.Get("access_type") == "offline" && q.Get("prompt") == "consent" },
		judge: func(q url.Values, token bool) string {
			if back, err := url.Parse(q.Get("redirect_uri")); err != nil || back.Hostname() != "127.0.0.1" || !token && q.Get("scope") == "" {
				return "Missing required parameter, or redirect_uri_mismatch"
			}
			return ""
		}},
	"Auth0": {path: "/", metadata: s256, takes: "access", renews: func(q url.Values) bool { return hasScope(q, "offline_access") },
		judge: func(q url.Values, token bool) string {
			if !token && q.Get("audience") != "https://API" {
				return "the token would be for nobody" // Auth0 gives an opaque one, which the API refuses
			}
			return exactly("http://localhost:33418/callback")(q, token)
		}},
	"Cognito": {path: "/POOL", takes: "id", renews: always, judge: func(q url.Values, token bool) string {
		if !token && !hasScope(q, "openid") {
			return "invalid_scope: there would be no ID token"
		}
		return exactly("http://localhost:33418/callback")(q, token)
	}},
	"Figma": {metadata: map[string]any{"code_challenge_methods_supported": []string{"S256"}, "registration_endpoint": "/o/register"}, takes: "access",
		secret: "hush", renews: always, judge: exactly("http://localhost:33418/callback")},
	"Slack": {metadata: s256, takes: "access", renews: always, judge: exactly("http://localhost:3118/callback")},
}

// The recipes of the documentation, as they stand there, with a server that behaves as the
// vendor's. Without the recipe the same server gets nobody signed in.
func TestTheRecipesForVendors(t *testing.T) {
	text, err := os.ReadFile("../../docs/sign-in.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := regexp.MustCompile("(?s)```yaml\nupstream: \\S+\nauth: # (\\w+)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(recipes) != len(vendors) {
		t.Fatalf("there are %d recipes for %d vendors", len(recipes), len(vendors))
	}
	for _, recipe := range recipes {
		t.Run(recipe[1], func(t *testing.T) {
			v := vendors[recipe[1]]
			v.start(t)
			header, entry, err := v.signIn(t, recipe[2])
			if err != nil || v.tokens[strings.TrimPrefix(header, "Bearer ")] != v.takes || !entry.Renews {
				t.Fatalf("with the recipe: %v; the server gets a token of kind %q; kept is %+v", err, v.tokens[strings.TrimPrefix(header, "Bearer ")], entry)
			}
			if _, _, err := v.signIn(t, "  mode: agent\n"); err == nil {
				t.Error("it is not needed")
			}
		})
	}
}

// signIn signs in with settings, as a person would who has them in a file.
func (v *vendor) signIn(t *testing.T, settings string) (header string, entry authorize.Entry, err error) {
	t.Helper()
	dir := t.TempDir()
	secret, file, logins := filepath.Join(dir, "secret"), filepath.Join(dir, "bridge.yaml"), filepath.Join(dir, "auth")
	settings = recipeIssuer.ReplaceAllString(v.elsewhere(t, settings), "issuer: "+v.URL+v.path)
	settings = "auth:\n" + strings.ReplaceAll(settings, "SECRET-FILE", secret) + "  store: file\n  dir: " + logins + "\n"
	for name, text := range map[string]string{secret: "hush\n", file: settings} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := (&settingFlags{file: file}).forLogin(v.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	options, err := signInOptions(m, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	options.Browser = []string{"true"} // show does it
	agent, err := authorize.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err = agent.SignIn(ctx, nil, func(p authorize.Pending) {
		resp, err := client.Get(p.URL) // a person who agrees to everything
		if err == nil && resp.Request.URL.Path != "/callback" {
			cancel() // the page at which it ended is the server's
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}); err != nil {
		return "", entry, err
	}
	list, err := authorize.List(logins)
	if err != nil || len(list) != 1 {
		t.Fatalf("kept are %v, %v", list, err)
	}
	header, err = agent.Authorization(ctx)
	return header, list[0], err
}
