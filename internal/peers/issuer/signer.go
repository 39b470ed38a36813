package issuer

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Signer is an authorization server whose tokens are JSON web tokens, and which
// exchanges them (RFC 8693) for a client "gateway" with the secret "hush".
type Signer struct {
	*httptest.Server
	mu        sync.Mutex
	key       *ecdsa.PrivateKey
	Exchanges []url.Values // that were asked for
	KeysAsked int
	Broken    int    // status of everything; 0: it works
	KeySet    string // in place of its keys; empty: those
	MaxAge    string // of its keys, as Cache-Control says; empty: nothing is said
	KeysAt    string // the path of its keys; empty: /keys
}

// NewSigner starts a Signer, which ends with the test.
func NewSigner(t *testing.T) *Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &Signer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.describe)
	mux.HandleFunc("GET /keys", s.keys)
	mux.HandleFunc("GET /moved", s.keys)
	mux.HandleFunc("POST /token", s.token)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.Broken != 0 {
			w.WriteHeader(s.Broken)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// Set runs f while no request is served.
func (s *Signer) Set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *Signer) describe(w http.ResponseWriter, _ *http.Request) {
	reply(w, 200, map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "jwks_uri": s.URL + cmp.Or(s.KeysAt, "/keys"),
		"response_types_supported": []string{"code"}})
}

func (s *Signer) keys(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != cmp.Or(s.KeysAt, "/keys") {
		http.NotFound(w, r)
		return
	}
	s.KeysAsked++
	if s.MaxAge != "" {
		w.Header().Set("Cache-Control", "public, max-age="+s.MaxAge)
	}
	if s.KeySet != "" {
		_, _ = io.WriteString(w, s.KeySet)
		return
	}
	point, err := s.key.PublicKey.Bytes() // 0x04, x, y
	if err != nil {
		panic(err)
	}
	reply(w, 200, map[string]any{"keys": []map[string]any{{"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig", "alg": "ES256",
		"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])}}})
}

// token exchanges: the new token is "for " and the subject of the old one.
func (s *Signer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.Exchanges = append(s.Exchanges, r.PostForm)
	id, secret, _ := r.BasicAuth()
	var claims struct{ Sub string }
	_, body, _ := cutToken(r.PostForm.Get("subject_token"))
	text, _ := base64.RawURLEncoding.DecodeString(body)
	_ = json.Unmarshal(text, &claims)
	if id != "gateway" || secret != "hush" || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" || claims.Sub == "" {
		reply(w, 400, map[string]any{"error": "invalid_request"})
		return
	}
	if claims.Sub == "mallory" {
		reply(w, 400, map[string]any{"error": "access_denied", "error_description": "not for mallory"})
		return
	}
	reply(w, 200, map[string]any{"access_token": "for-" + claims.Sub, "token_type": "Bearer", "expires_in": 3600,
		"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
}

func cutToken(token string) (head, body, signature string) {
	parts := [3]string{}
	for i, from := 0, 0; i < 3; i++ {
		end := from
		for end < len(token) && token[end] != '.' {
			end++
		}
		parts[i] = token[from:end]
		from = min(end+1, len(token))
	}
	return parts[0], parts[1], parts[2]
}

// Renew has another key from now on, under the same name: the one before is withdrawn.
func (s *Signer) Renew() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	s.Set(func() { s.key = key })
}

// Claims are those of a token for a subject and an audience, which lasts an hour.
func (s *Signer) Claims(subject, audience string) map[string]any {
	now := time.Now()
	return map[string]any{"iss": s.URL, "sub": subject, "aud": audience, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "tools:read tools:call", "jti": rand.Text()}
}

// Sign makes a token of claims.
func (s *Signer) Sign(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return s.SignText(`{"alg":"ES256","kid":"1","typ":"at+jwt"}`, string(body))
}

// SignText makes a token of a header and claims as they are.
func (s *Signer) SignText(header, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	sum := sha256.Sum256([]byte(text))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		panic(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), t.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
