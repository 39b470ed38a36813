package http1

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Whatever the server has, and whoever has used http.DefaultTransport before.
func TestTheDefaultTransportSpeaksHTTP1Only(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	srv.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	srv.StartTLS()
	defer srv.Close()
	if _, err := http.DefaultTransport.RoundTrip(httptest.NewRequest(http.MethodGet, srv.URL, http.NoBody)); err == nil {
		t.Error("it is trusted")
	}
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	tr := DefaultTransport()
	defer tr.CloseIdleConnections()
	if tr.TLSClientConfig != nil {
		t.Errorf("it offers %q", tr.TLSClientConfig.NextProtos)
	}
	tr.TLSClientConfig = &tls.Config{RootCAs: roots}
	resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, srv.URL, http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Proto != "HTTP/1.1" {
		t.Error(resp.Proto)
	}
}
