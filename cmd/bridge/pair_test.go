package main

import (
	"crypto/x509"
	"testing"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/testcert"
)

// writePair writes a self-signed certificate for 127.0.0.1 and its key.
func writePair(t *testing.T, dir string, serial int64) (files config.ServerTLS, leaf *x509.Certificate) {
	t.Helper()
	files.Cert, files.Key, leaf = testcert.Write(t, dir, serial)
	return files, leaf
}
