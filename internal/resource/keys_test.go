package resource

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// What an issuer that is being repaired or set up anew may say with status 200.
var noKeys = map[string]string{
	"a page":                   "<html>maintenance</html>",
	"nothing":                  " ",
	"an empty set":             `{"keys":[]}`,
	"no set":                   `{}`,
	"keys of no use here":      `{"keys":[{"kty":"RSA","alg":"RSA-OAEP","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AQAB"}]}`,
	"a key that cannot be one": `{"keys":[{"kty":"RSA","n":"-","e":"?"}]}`,
}

func statusOf(r *Resource, token string) int {
	if refusal := r.Admit(bringing("Bearer " + token)); refusal != nil {
		return refusal.Status
	}
	return http.StatusOK
}

func TestAnIssuerWithoutKeysMakesNoTokenABadOne(t *testing.T) {
	for name, says := range noKeys {
		s := issuer.NewSigner(t)
		s.Set(func() { s.KeySet = says })
		log := &bytes.Buffer{}
		r := Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Issuers: &http.Client{Transport: &http.Transport{}}, Log: zerolog.New(log)})
		t.Cleanup(r.Close)
		if status := statusOf(r, s.Sign(s.Claims("ada", endpoint))); status != http.StatusServiceUnavailable {
			t.Errorf("%s: a good token got %d", name, status)
		}
		if name != "a key that cannot be one" && !strings.Contains(log.String(), "keys cannot be had") {
			t.Errorf("%s: the log says %q", name, log)
		}
	}
}

// inMemory asks an issuer without a connection.
type inMemory struct{ *issuer.Signer }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.Config.Handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// Nor does somebody whose token is under a key that nobody knows have the others forgotten.
func TestKeysThatAreKnownStayWhenTheIssuerHasNone(t *testing.T) {
	s, other := issuer.NewSigner(t), issuer.NewSigner(t)
	for name, says := range noKeys {
		synctest.Test(t, func(t *testing.T) {
			s.Set(func() { s.KeySet = "" })
			r := Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Issuers: &http.Client{Transport: inMemory{s}}, Log: zerolog.Nop()})
			ada := s.Claims("ada", endpoint)
			if status := statusOf(r, s.Sign(ada)); status != http.StatusOK {
				t.Fatalf("a good token got %d", status)
			}
			s.Set(func() { s.KeySet = says })
			time.Sleep(keysEvery)
			if status := statusOf(r, other.Sign(ada)); status != http.StatusServiceUnavailable {
				t.Errorf("%s: a token under another key got %d", name, status)
			}
			if status := statusOf(r, s.Sign(s.Claims("grace", endpoint))); status != http.StatusOK {
				t.Errorf("%s: a good token got %d after it", name, status)
			}
			late := claims(ada, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
			if refusal := r.Admit(bringing("Bearer " + s.Sign(late))); refusal == nil || !strings.Contains(refusal.Challenge, "the token has expired") {
				t.Errorf("%s: one that has expired got %+v", name, refusal)
			}
		})
	}
}
