package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartSentinel starts a Sentinel with a configuration, which it writes to.
func StartSentinel(t testing.TB, conf string) *Server {
	t.Helper()
	s := Start(t) // finds a port
	s.Kill()
	s.args = nil
	s.prefix = []string{conf, "--sentinel"}
	s.Restart()
	return s
}

// Cluster starts three servers that share the slots.
func Cluster(t testing.TB) []*Server {
	t.Helper()
	const nodes, slots = 3, 16384
	var list []*Server
	for i := range nodes {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		s.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/nodes), strconv.Itoa((i+1)*slots/nodes-1))
		if i > 0 {
			s.Must("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(list[0].Port))
		}
		list = append(list, s)
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for range 1000 {
		ready := 0
		for _, s := range list {
			info := s.Text("CLUSTER", "INFO")
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") {
				ready++
			}
		}
		if ready == nodes {
			return list
		}
		<-look.C
	}
	t.Fatal("the cluster does not come up")
	return nil
}

// StartTLS starts a server that speaks TLS only, and returns the file with the
// certificate to trust.
func StartTLS(t testing.TB) (s *Server, ca string) {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	makeCertificate(t, cert, key)
	s = Start(t)
	s.Kill()
	s.args = []string{"--port", "0", "--tls-port", strconv.Itoa(s.Port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"}
	s.Restart()
	return s, cert
}

func makeCertificate(t testing.TB, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
