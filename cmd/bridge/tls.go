package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/config"
	"github.com/rs/zerolog"
)

// clientTLS reads the files that a mount names; nil when it names none.
func clientTLS(c *config.ClientTLS) (*tls.Config, error) {
	if *c == (config.ClientTLS{}) {
		return nil, nil
	}
	roots, noRoots := authorities(c.CA)
	pairs, noPairs := ownPair(c)
	if err := errors.Join(noRoots, noPairs); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, RootCAs: roots, Certificates: pairs}, nil
}

// authorities reads the certificates to trust; nil stands for the system's.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("upstream-tls.ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("upstream-tls.ca: %s holds no certificate in PEM form", file)
	}
	return roots, nil
}

// ownPair reads what the bridge shows the server, if anything.
func ownPair(c *config.ClientTLS) ([]tls.Certificate, error) {
	if c.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("upstream-tls.cert: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// serverTLS returns the listener's configuration, nil for plain HTTP. The
// certificate is read again when its file changes, as renewals do.
func serverTLS(c *config.ServerTLS, log zerolog.Logger) (*tls.Config, *reloader, error) {
	if c.Cert == "" {
		return nil, nil, nil
	}
	r := &reloader{files: *c, log: log}
	if _, err := r.certificate(nil); err != nil {
		return nil, nil, fmt.Errorf("tls.cert: %w", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: r.certificate,
	}, r, nil
}

// reloadEvery bounds how often the files are looked at.
const reloadEvery = 10 * time.Second

// reloader holds a certificate and reads it anew after its file changed. While
// the new files do not fit together it keeps the old certificate.
type reloader struct {
	files config.ServerTLS
	log   zerolog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time // modification time of the files that pair was read from
	looked  time.Time
	told    string // the last failure that was logged
}

func (r *reloader) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.pair != nil && now.Sub(r.looked) < reloadEvery {
		return r.pair, nil
	}
	r.looked = now
	info, err := os.Stat(r.files.Cert)
	if err != nil || r.pair != nil && info.ModTime().Equal(r.changed) {
		return r.current(err)
	}
	pair, err := tls.LoadX509KeyPair(r.files.Cert, r.files.Key)
	if err == nil {
		r.pair, r.changed, r.told = &pair, info.ModTime(), ""
	}
	return r.current(err)
}

// replace takes the certificate of these files from now on. When they hold none
// it changes nothing and says so.
func (r *reloader) replace(files config.ServerTLS) error {
	pair, changed, err := load(files)
	if err != nil {
		return fmt.Errorf("tls.cert: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files, r.pair, r.changed, r.looked, r.told = files, pair, changed, time.Now(), ""
	return nil
}

func load(files config.ServerTLS) (*tls.Certificate, time.Time, error) {
	info, err := os.Stat(files.Cert)
	if err != nil {
		return nil, time.Time{}, err
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	return &pair, info.ModTime(), err
}

// current returns the certificate that there is, and logs a new reason why there
// is no newer one.
func (r *reloader) current(err error) (*tls.Certificate, error) {
	if r.pair == nil {
		return nil, fmt.Errorf("the certificate cannot be loaded from %s and %s: %w", r.files.Cert, r.files.Key, err)
	}
	if err != nil && err.Error() != r.told {
		r.told = err.Error()
		r.log.Warn().Err(err).Msgf("tls.cert: %s cannot be loaded; the certificate that was read before stays in use", r.files.Cert)
	}
	return r.pair, nil
}
