package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/smallfile"
)

// clientTLS reads the files that a mount names; nil when it names none.
func clientTLS(c *config.ClientTLS) (*tls.Config, error) {
	if *c == (config.ClientTLS{}) {
		return nil, nil
	}
	roots, noRoots := authorities(c)
	pairs, noPairs := ownPair(c)
	if err := errors.Join(noRoots, noPairs); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, RootCAs: roots, Certificates: pairs}, nil
}

// authorities reads the certificates to trust; nil stands for the system's alone.
func authorities(c *config.ClientTLS) (*x509.CertPool, error) {
	switch {
	case c.CAOnly != "":
		return addAuthorities(x509.NewCertPool(), "upstream-tls.ca-only", c.CAOnly)
	case c.CA != "":
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("upstream-tls.ca: the system's certificates cannot be read (%w); upstream-tls.ca-only does without them", err)
		}
		return addAuthorities(roots, "upstream-tls.ca", c.CA)
	}
	return nil, nil
}

func addAuthorities(roots *x509.CertPool, key, file string) (*x509.CertPool, error) {
	pem, err := smallfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", key, file)
	}
	return roots, nil
}

// ownPair reads what the bridge shows the server, if anything.
func ownPair(c *config.ClientTLS) ([]tls.Certificate, error) {
	if c.Cert == "" {
		return nil, nil
	}
	pair, err := smallfile.Pair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("upstream-tls.cert: %w", err)
	}
	return []tls.Certificate{pair}, nil
}
