package main

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/mcpbridge/bridge/config"
)

// A private authority is trusted besides the system's: else a sign-in at a public
// authorization server would fail behind it.
func TestAPrivateAuthorityIsOneMore(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := certificateOf(t, server)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	own, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	system, err := x509.SystemCertPool()
	if err != nil {
		t.Skip("this machine has no certificates: ", err)
	}
	alone := x509.NewCertPool()
	alone.AddCert(own)
	more := system.Clone()
	more.AddCert(own)
	for name, test := range map[string]struct {
		set  config.ClientTLS
		want *x509.CertPool
	}{
		"ca":      {config.ClientTLS{CA: file}, more},
		"ca-only": {config.ClientTLS{CAOnly: file}, alone},
	} {
		got, err := clientTLS(&test.set)
		if err != nil || !got.RootCAs.Equal(test.want) {
			t.Errorf("%s: other certificates are trusted than should be, %v", name, err)
		}
	}
}
