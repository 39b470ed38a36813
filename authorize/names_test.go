package authorize

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// describing answers with one document.
func describing(t *testing.T, document func(url string) string) *httptest.Server {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(document(s.URL)))
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// What an authorization server says of itself is read once, by its names letter by letter: what
// was judged is what is used.
func TestNamesOfMetadataAreReadAsTheyAre(t *testing.T) {
	s := describing(t, func(url string) string {
		return `{"issuer":"` + url + `","authorization_endpoint":"` + url + `/authorize","token_endpoint":"` + url + `/token","code_challenge_methods_supported":["S256"],
			"Issuer":"https://other.example.com","Authorization_Endpoint":"javascript:alert(1)","Token_Endpoint":"http://other.example.com/token","Device_Authorization_Endpoint":"http://other.example.com/device"}`
	})
	a, err := New(Options{Server: s.URL + "/mcp", Dir: t.TempDir(), Store: "file"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for name, read := range map[string]func() (*metadata, error){
		"for a browser": func() (*metadata, error) {
			return a.readIssuer(t.Context(), s.URL+"/.well-known/oauth-authorization-server", s.URL)
		},
		"for a machine": func() (*metadata, error) {
			return a.readPlainIssuer(t.Context(), s.URL+"/.well-known/oauth-authorization-server", s.URL)
		},
	} {
		meta, err := read()
		if err != nil || meta.Issuer != s.URL || meta.AuthorizationEndpoint != s.URL+"/authorize" || meta.TokenEndpoint != s.URL+"/token" || meta.DeviceEndpoint != "" {
			t.Errorf("%s: %+v, %v", name, meta, err)
		}
	}
}
