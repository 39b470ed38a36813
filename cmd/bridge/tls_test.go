package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/config"
	"github.com/rs/zerolog"
)

// writePair writes a self-signed certificate for 127.0.0.1 and its key.
func writePair(t *testing.T, dir string, serial int64) (files config.ServerTLS, cert *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files = config.ServerTLS{Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "k.pem")}
	for name, block := range map[string]*pem.Block{files.Cert: {Type: "CERTIFICATE", Bytes: der}, files.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return files, cert
}

func TestListenerServesHTTPS(t *testing.T) {
	files, cert := writePair(t, t.TempDir(), 1)
	p := start(t, "serve", "--upstream", deadURL(t), "--listen", "127.0.0.1:0", "--tls.cert", files.Cert, "--tls.key", files.Key)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	transport := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + p.address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Errorf("/healthz answers %s with %s", resp.Proto, resp.Status)
	}
}

func TestRenewedCertificateIsTakenAndABrokenOneIsNot(t *testing.T) {
	dir := t.TempDir()
	files, _ := writePair(t, dir, 1)
	var log strings.Builder
	r := &reloader{files: files, log: zerolog.New(&log)}
	expect := func(what string, serial int64) {
		t.Helper()
		r.looked = time.Time{} // as if it had been long ago
		pair, err := r.certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if leaf.SerialNumber.Int64() != serial {
			t.Errorf("%s: certificate %d is served, want %d", what, leaf.SerialNumber, serial)
		}
	}
	age := func(d time.Duration) {
		t.Helper()
		at := time.Now().Add(d)
		if err := os.Chtimes(files.Cert, at, at); err != nil {
			t.Fatal(err)
		}
	}
	expect("at first", 1)
	writePair(t, dir, 2)
	age(time.Minute)
	expect("renewed", 2)
	if err := os.WriteFile(files.Cert, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	age(2 * time.Minute)
	expect("broken", 2)
	expect("still broken", 2)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, files.Cert) {
		t.Errorf("the log says of a broken certificate: %s", got)
	}
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	expect("removed", 2)
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
