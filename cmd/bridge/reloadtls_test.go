package main

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/bridge/config"
)

func TestReloadTakesAnotherCertificateAtOnce(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	text := func(dir string) string {
		return "listen: 127.0.0.1:0\ntls: {cert: '" + dir + "/c.pem', key: '" + dir + "/k.pem'}\nupstream: '" + upstream.URL + "'\n"
	}
	r := startWithFile(t, text(dir))
	expect := func(what string, serial int64) {
		t.Helper()
		if got := servedSerial(t, r.address); got != serial {
			t.Errorf("%s: certificate %d is served, want %d", what, got, serial)
		}
	}
	expect("at first", 1)
	writePair(t, dir, 2)
	r.hangUp("was reloaded")
	expect("the same file, renewed", 2)
	other := t.TempDir()
	writePair(t, other, 3)
	r.reload(text(other), "was reloaded")
	expect("another file", 3)
	r.reload(text("/no"), "nothing has changed")
	expect("a missing file", 3)
}

func TestIdentityCoversWhatAMountIsMadeOf(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.UpstreamTLS.CA = ca
	before := identify(&cfg, &cfg.Mount)
	if err := os.WriteFile(ca, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if identify(&cfg, &cfg.Mount).files == before.files {
		t.Error("another authority in the same file is not noticed")
	}
}

// servedSerial returns the serial number of the certificate at an address.
func servedSerial(t *testing.T, address string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // which one it is, is the question
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}
