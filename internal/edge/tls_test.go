package edge

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/testcert"
	"github.com/rs/zerolog"
)

func TestListenerServesHTTPS(t *testing.T) {
	cert, key, leaf := testcert.Write(t, t.TempDir(), 1)
	e, _ := serve(t, from, Options{TLS: Files{cert, key}})
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	transport := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + e.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Errorf("it answers %s with %s", resp.Proto, resp.Status)
	}
}

// A client's own error, such as "wrong version number", says nothing of the cause.
func TestTheLogTellsOfTLSToAPlainListener(t *testing.T) {
	for _, standard := range []bool{false, true} {
		e, log := serve(t, from, Options{StandardHTTP: standard, Memory: budget.Of(1 << 30)})
		for range 2 {
			if conn, err := tls.Dial("tcp", e.Addr().String(), &tls.Config{InsecureSkipVerify: true}); err == nil {
				t.Errorf("standard %t: TLS was spoken with %v", standard, conn.RemoteAddr())
			}
		}
		log.expect(t, "a client spoke TLS (https://) to this listener of plain HTTP")
		if n := strings.Count(log.String(), "spoke TLS"); n != 1 {
			t.Errorf("standard %t: it says so %d times:\n%s", standard, n, log)
		}
	}
	cert, key, _ := testcert.Write(t, t.TempDir(), 1)
	e, log := serve(t, from, Options{TLS: Files{cert, key}, Memory: budget.Of(1 << 30)})
	conn, err := tls.Dial("tcp", e.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if strings.Contains(log.String(), "spoke TLS") {
		t.Errorf("where there is a certificate the log says %s", log)
	}
}

func TestRenewedCertificateIsTakenAndABrokenOneIsNot(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := testcert.Write(t, dir, 1)
	files := Files{cert, key}
	var log strings.Builder
	r, err := newReloader(files, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, serial int64) {
		t.Helper()
		<-r.look()
		pair := r.certificate()
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
	testcert.Write(t, dir, 2)
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
