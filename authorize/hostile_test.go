package authorize

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// hostile is an MCP server that is its own authorization server, takes every client and
// keeps what it is told.
type hostile struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string
}

func newHostile(t *testing.T) *hostile {
	h := &hostile{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close(); http.DefaultClient.CloseIdleConnections() })
	return h
}

// ServeHTTP implements http.Handler.
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id, secret, _ := r.BasicAuth()
	h.mu.Lock()
	h.heard = append(h.heard, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Authorization"), id, secret, string(body)}, " "))
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		_, _ = io.WriteString(w, `{"resource":"`+h.URL+`/mcp","authorization_servers":["`+h.URL+`"]}`)
	case "/.well-known/oauth-authorization-server":
		_, _ = io.WriteString(w, `{"issuer":"`+h.URL+`","authorization_endpoint":"`+h.URL+`/authorize","token_endpoint":"`+h.URL+`/token","device_authorization_endpoint":"`+h.URL+
			`/device","code_challenge_methods_supported":["S256"]}`)
	case "/authorize":
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"c"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/device":
		_, _ = io.WriteString(w, `{"device_code":"d","user_code":"u","verification_uri":"`+h.URL+`/enter","expires_in":600,"interval":1}`)
	case "/token":
		_, _ = io.WriteString(w, `{"access_token":"a","token_type":"Bearer","expires_in":3600}`)
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// knows returns a request that held a text, "" without one.
func (h *hostile) knows(text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, request := range h.heard {
		if strings.Contains(request, text) {
			return request
		}
	}
	return ""
}

const (
	hush     = "S3CRET-OF-THE-OPERATOR"
	personal = "THE-TOKEN-OF-A-PERSON"
)

// identityProvider gives an assertion to whoever brings the ID token.
func identityProvider(t *testing.T) string {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"issuer":"`+s.URL+`","token_endpoint":"`+s.URL+`/token"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"for-`+r.PostFormValue("audience")+`","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A","expires_in":60}`)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// An MCP server names whom it likes as its authorization server: itself, too. The secret
// goes to none that the operator did not name, whatever the grant.
func TestASecretGoesToNobodyThatTheServerNames(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(personal), 0o600); err != nil {
		t.Fatal(err)
	}
	good := issuer.New(t)
	for _, grant := range []Grant{Auto, Code, Device, ClientCredentials, Enterprise} {
		for _, named := range []string{"", good.URL} {
			t.Run(string(grant)+" "+named, func(t *testing.T) {
				h := newHostile(t)
				a, err := New(Options{
					Server: h.URL + "/mcp", Dir: t.TempDir(), Store: "file", Browser: agreeing(), Log: zerolog.Nop(), Grant: grant, Issuer: named, ClientID: "gw", ClientSecret: hush,
					IDP: IDP{Issuer: identityProvider(t), ClientID: "gw-at-home", ClientSecret: hush, TokenFile: token},
				})
				if err == nil {
					defer a.Close()
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					err = a.Renew(ctx, Refusal{Status: http.StatusUnauthorized})
				}
				if err == nil || !strings.Contains(err.Error(), "auth.issuer") || named != "" && (!strings.Contains(err.Error(), named) || !strings.Contains(err.Error(), h.URL)) {
					t.Errorf("told %v", err)
				}
				for _, text := range []string{hush, personal, base64.StdEncoding.EncodeToString([]byte("gw:" + hush)), "/token"} {
					if request := h.knows(text); request != "" {
						t.Errorf("the hostile server heard %s", request)
					}
				}
			})
		}
	}
}

// So it is with the tokens that people brought, and there with a key just as with a secret.
func TestPeoplesTokensGoToNobodyThatTheServerNames(t *testing.T) {
	_, text := newKey(t)
	good := issuer.New(t)
	for name, change := range map[string]func(*Options){
		"secret":        func(o *Options) { o.ClientSecret = hush },
		"key":           func(o *Options) { o.ClientKey = text },
		"neither":       func(*Options) {},
		"secret, bound": func(o *Options) { o.ClientSecret, o.Issuer = hush, good.URL },
		"key, bound":    func(o *Options) { o.ClientKey, o.Issuer = text, good.URL },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t)
			opt := Options{Server: h.URL + "/mcp", Grant: Exchange, ClientID: "gw", Log: zerolog.Nop()}
			change(&opt)
			e, err := NewExchanger(opt)
			if err == nil {
				defer e.Close()
				_, err = e.Authorization(t.Context(), "Bearer "+personal)
			}
			if err == nil || !strings.Contains(err.Error(), "auth.issuer") || opt.Issuer != "" && (!strings.Contains(err.Error(), opt.Issuer) || !strings.Contains(err.Error(), h.URL)) {
				t.Errorf("told %v", err)
			}
			for _, text := range []string{hush, personal, "/token"} {
				if request := h.knows(text); request != "" {
					t.Errorf("the hostile server heard %s", request)
				}
			}
		})
	}
}

// A key needs no such setting: what proves it is for one authorization server, and of no
// use to it elsewhere.
func TestAProofByKeyIsForItsReceiverOnly(t *testing.T) {
	key, text := newKey(t)
	h := newHostile(t)
	a, err := New(Options{Server: h.URL + "/mcp", Dir: t.TempDir(), Store: "file", Log: zerolog.Nop(), Grant: ClientCredentials, ClientID: "gw", ClientKey: text})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Renew(t.Context(), Refusal{Status: http.StatusUnauthorized}); err != nil {
		t.Fatal(err)
	}
	_, form, _ := strings.Cut(h.knows("client_assertion="), "/token")
	values, err := url.ParseQuery(strings.TrimSpace(form))
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.RegisteredClaims
	if _, err := jwt.ParseWithClaims(values.Get("client_assertion"), &claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil }); err != nil {
		t.Fatal(err)
	}
	if len(claims.Audience) != 1 || claims.Audience[0] != h.URL || claims.ExpiresAt == nil {
		t.Errorf("it is for %v, until %v", claims.Audience, claims.ExpiresAt)
	}
}

func newKey(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// What came from another authorization server, before auth.issuer was set, is not used: neither a
// login nor a page that is open, which hold a client of their own.
func TestWhatAnotherIssuerGaveIsNotUsed(t *testing.T) {
	h, good := newHostile(t), issuer.New(t)
	dir := t.TempDir()
	at := func(named string) *Agent {
		a, err := New(Options{Server: h.URL + "/mcp", Dir: dir, Store: "file", Browser: []string{"true"}, Log: zerolog.Nop(), Issuer: named})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a
	}
	before := at("")
	own := client{ID: "gw", Secret: hush, Method: methodBasic}
	meta := &metadata{}
	meta.Issuer, meta.TokenEndpoint = h.URL, h.URL+"/token"
	p := before.begin(&place{resource: h.URL + "/mcp", meta: meta}, &own, "http://127.0.0.1:1/callback", nil)
	if err := before.store.keepPending(p); err != nil {
		t.Fatal(err)
	}
	l := Login{Server: before.opt.Server, Issuer: h.URL, TokenEndpoint: h.URL + "/token", Active: true, Renews: true, secrets: secrets{Client: own, Access: "old", Refresh: "r"}}
	if err := before.store.save(&l); err != nil {
		t.Fatal(err)
	}
	now := at(good.URL)
	if header, err := now.Authorization(t.Context()); header != "" || err != nil {
		t.Errorf("the server gets %q, %v", header, err)
	}
	if _, err := now.complete(t.Context(), url.Values{"state": {p.State}, "code": {"c"}}); err == nil {
		t.Error("a sign-in of another issuer was finished")
	}
	if p := now.store.newestPending(); p != nil {
		t.Errorf("the page of another issuer is shown: %s", p.URL)
	}
	if again := at(h.URL + "/"); again.Login() == nil {
		t.Error("a stroke at the end makes another issuer")
	}
	if request := h.knows("/token"); request != "" {
		t.Errorf("the other issuer heard %s", request)
	}
	if had, err := now.SignOut(t.Context()); !had || err != nil || before.store.newestPending() != nil {
		t.Errorf("logout left it: %v %v", had, err)
	}
}
