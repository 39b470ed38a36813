package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// shown is a service over https that notes whether it was shown a certificate.
type shown struct {
	*httptest.Server
	mu     sync.Mutex
	pathOf []string // of requests that came with a certificate
	all    []string
}

func newShown(t *testing.T, handler http.HandlerFunc) *shown {
	t.Helper()
	s := &shown{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.all = append(s.all, r.URL.String())
		if len(r.TLS.PeerCertificates) > 0 {
			s.pathOf = append(s.pathOf, r.URL.String())
		}
		s.mu.Unlock()
		handler(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *shown) requests() (all, withCertificate []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.all...), append([]string(nil), s.pathOf...)
}

// The certificate that the bridge shows its server is for that alone, whatever place the server
// names for its metadata, and whoever reads them.
func TestTheOwnCertificateIsShownToTheServerOnly(t *testing.T) {
	own, _ := writePair(t, t.TempDir(), 7)
	for _, mode := range []string{"relay", "agent", "check", "login"} {
		for name, at := range map[string]string{"metadata": "/.well-known/oauth-protected-resource/mcp", "a redirect": "", "a secret": "/v1/secret?x=1"} {
			t.Run(mode+", "+name, func(t *testing.T) {
				inside := newShown(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, `{"resource":"https://`+r.Host+`/other","password":"INTERNAL"}`)
				})
				var server *shown
				server = newShown(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case at == "" && r.URL.Path == "/meta":
						http.Redirect(w, r, inside.URL+"/.well-known/oauth-protected-resource/mcp", http.StatusFound)
					case r.Method == http.MethodGet:
						http.NotFound(w, r)
					default:
						place := inside.URL + at
						if at == "" {
							place = server.URL + "/meta"
						}
						w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+place+`"`)
						w.WriteHeader(http.StatusUnauthorized)
					}
				})
				settings := []string{"--upstream-tls.ca", certificatesOf(t, server.Server, inside.Server), "--upstream-tls.cert", own.Cert, "--upstream-tls.key", own.Key}
				told := learnOf(t, mode, server.URL+"/mcp", settings)
				_, trusted := server.requests()
				all, betrayed := inside.requests()
				if len(trusted) == 0 || len(betrayed) > 0 || strings.Contains(told, "INTERNAL") {
					t.Errorf("the server was shown the certificate for %q, another place for %q; told %s", trusted, betrayed, told)
				}
				if name == "a secret" && len(all) > 0 {
					t.Errorf("read %q", all)
				}
			})
		}
	}
}

// learnOf has a bridge in some mode find out where to sign in, and returns what it says.
func learnOf(t *testing.T, mode, server string, settings []string) string {
	t.Helper()
	switch mode {
	case "check":
		out, _ := runCheck(t, append(settings, server)...)
		return out
	case "login":
		var text bytes.Buffer
		args := append([]string{"login", "--auth.dir", t.TempDir(), "--auth.store", "file", "--auth.browser", "true"}, append(settings, server)...)
		err := run(t.Context(), args, surroundings{in: strings.NewReader(""), out: &text, err: &text})
		return fmt.Sprint(&text, err)
	}
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--upstream", server, "--auth.mode", mode}, settings...)
	if mode == "agent" {
		args = append(args, "--auth.dir", t.TempDir(), "--auth.store", "file", "--auth.browser", "true")
	}
	p := start(t, args...)
	_, first := p.post("/mcp", listTools)
	_, second := p.get("/.well-known/oauth-protected-resource/mcp")
	return first + second
}

// certificatesOf writes what several servers show to one file.
func certificatesOf(t *testing.T, servers ...*httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.pem")
	var text []byte
	for _, s := range servers {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
