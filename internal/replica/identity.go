package replica

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// identity is what replicas prove themselves with to each other: key pairs that are
// derived from the keys of the store, so that whoever may read what is kept may also ask
// for it, and nobody else. TLS 1.3 does the rest: both sides prove that they have the
// key, what passes is secret, and nothing that was recorded can be played again.
type identity struct {
	certificate tls.Certificate     // of the first key
	trusted     []ed25519.PublicKey // of all keys
}

// protocols that replicas speak with each other: all requests share a connection.
var protocols = []string{"h2"}

func newIdentity(keys []store.Key) (*identity, error) {
	if len(keys) == 0 {
		return nil, errors.New("replica: replicas prove themselves with the keys of their store, and there is none")
	}
	id := new(identity)
	for i := range keys {
		seed, err := hkdf.Expand(sha256.New, keys[i][:], "mcp-bridge replica: identity", ed25519.SeedSize)
		if err != nil {
			return nil, err
		}
		private := ed25519.NewKeyFromSeed(seed)
		id.trusted = append(id.trusted, private.Public().(ed25519.PublicKey))
		if i == 0 {
			if id.certificate, err = certify(private); err != nil {
				return nil, err
			}
		}
	}
	return id, nil
}

// certify makes a certificate that says nothing but its key, and holds for ever.
func certify(private ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(nil, template, template, private.Public(), private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

var errStranger = errors.New("the other side is no replica of this bridge: its key is not one of store.keys")

// verify checks the other side, whose possession of its key TLS has checked.
func (id *identity) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errStranger
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || !slices.ContainsFunc(id.trusted, func(t ed25519.PublicKey) bool { return t.Equal(key) }) {
		return errStranger
	}
	return nil
}

func (id *identity) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate}, NextProtos: protocols, VerifyConnection: id.verify,
	}
}

func (id *identity) server() *tls.Config {
	config := id.config()
	config.ClientAuth = tls.RequireAnyClientCert
	return config
}

func (id *identity) client() *tls.Config {
	config := id.config()
	config.InsecureSkipVerify = true // the key counts, and no name: verify checks it
	return config
}
