package resource

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
)

// inside is a service in the operator's network, over https, that says the same everywhere.
func inside(t *testing.T, document string) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, document)
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

// A server that names a place elsewhere for its metadata has the bridge read what it likes
// there, and tell everybody, unless it is confined to metadata of its own.
func TestAServerHasNothingReadAndToldThatIsNotItsOwn(t *testing.T) {
	const place = "/.well-known/oauth-protected-resource/mcp"
	s := newServer(t)
	for _, test := range []struct {
		name, document, at string
		asked, told        bool
	}{
		{"a secret", `{"data":{"password":"INTERNAL"},"resource":"SERVER"}`, "/v1/secret", false, false},
		{"with a query", `{"data":{"password":"INTERNAL"},"resource":"SERVER"}`, place + "?x=1", false, false},
		{"a document that is nobody's", `{"data":{"password":"INTERNAL"}}`, place, true, false},
		{"somebody else's document", `{"resource":"https://INTERNAL.example.com/mcp"}`, place, true, false},
		{"no document", `INTERNAL`, place, true, false},
		{"one of its own", `{"data":{"password":"INTERNAL"},"resource":"SERVER","scopes_supported":["a"]}`, place, true, true},
		{"one of the bridge's", `{"data":{"password":"INTERNAL"},"resource":"https://tools.example.com/mcp","scopes_supported":["a"]}`, place, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			there, asked := inside(t, strings.ReplaceAll(test.document, "SERVER", s.URL+"/mcp"))
			r := Relay(RelayOptions{Server: s.URL + "/mcp", Path: "/mcp", Public: "https://tools.example.com/mcp", Servers: there.Client(), Issuers: there.Client(), Log: zerolog.Nop()})
			t.Cleanup(r.Close)
			mux := http.NewServeMux()
			for path, handler := range r.Routes([]string{"/mcp"}, true) {
				mux.Handle(path, handler)
			}
			r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), []string{`Bearer resource_metadata="` + there.URL + test.at + `"`})
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+place, nil))
			if (asked.Load() > 0) != test.asked || (w.Code == http.StatusOK) != test.told || strings.Contains(w.Body.String(), "INTERNAL") {
				t.Errorf("asked %d times; told %d %s", asked.Load(), w.Code, w.Body)
			}
			if test.told && !strings.Contains(w.Body.String(), "scopes_supported") {
				t.Errorf("told %s", w.Body)
			}
		})
	}
}

// What else is at the server's own origin, behind the bridge's certificate, is not told either.
func TestOfAServersOwnOriginMetadataAreTold(t *testing.T) {
	s := newServer(t)
	s.documents["/v1/secret"] = `{"data":{"password":"INTERNAL"},"scopes_supported":["a"]}`
	r, h := relay(t, s, "", io.Discard)
	r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), []string{`Bearer resource_metadata="` + s.URL + `/v1/secret"`})
	if status, document := get(t, h, "http://localhost/.well-known/oauth-protected-resource/mcp"); status != 200 || document["data"] != nil || document["scopes_supported"] == nil {
		t.Errorf("%d %v", status, document)
	}
}
