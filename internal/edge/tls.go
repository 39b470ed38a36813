package edge

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/fileowner"
	"github.com/mcpbridge/bridge/internal/meter"
)

// Files name a listener's certificate chain and its private key, PEM. The zero
// value stands for plain HTTP.
type Files struct{ Cert, Key string }

// Check reports why the files could not serve a listener.
func (f Files) Check() error {
	_, _, err := load(f)
	return named(f, err)
}

// named says which files an error is about.
func named(f Files, err error) error {
	if err != nil {
		err = fmt.Errorf("tls.cert: the certificate cannot be loaded from %s and %s: %w", f.Cert, f.Key, err)
	}
	return err
}

// newReloader reads the files for the first time.
func newReloader(files Files, log zerolog.Logger) (*reloader, error) {
	r := &reloader{log: log}
	return r, r.replace(files)
}

// config is that of a listener with the certificate. It is read again when its
// file changes, as renewals do.
func (r *reloader) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			meter.Inside(hello.Conn).Greeted()
			return r.certificate(hello)
		},
	}
}

// reloadEvery bounds how often the files are looked at.
const reloadEvery = 10 * time.Second

// reloader holds a certificate and reads it anew after its file changed. While
// the new files do not fit together it keeps the old certificate.
type reloader struct {
	log zerolog.Logger

	mu      sync.Mutex // guards what follows
	files   Files
	pair    *tls.Certificate
	changed time.Time // modification time of the files that pair was read from
	looked  time.Time
	told    string // the last failure that was logged
}

func (r *reloader) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.looked) < reloadEvery {
		return r.pair, nil
	}
	r.looked = now
	info, err := os.Stat(r.files.Cert)
	if err == nil && info.ModTime().Equal(r.changed) {
		return r.pair, nil
	}
	pair, changed, err := load(r.files)
	if err == nil {
		r.pair, r.changed, r.told = pair, changed, ""
	} else if err.Error() != r.told {
		r.told = err.Error()
		r.log.Warn().Err(err).Msgf("tls.cert: %s cannot be loaded; the certificate that was read before stays in use", r.files.Cert)
	}
	return r.pair, nil
}

// replace takes the certificate of these files from now on. When they hold none
// it changes nothing and says so.
func (r *reloader) replace(files Files) error {
	pair, changed, err := load(files)
	if err != nil {
		return named(files, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files, r.pair, r.changed, r.looked, r.told = files, pair, changed, time.Now(), ""
	return nil
}

func load(files Files) (*tls.Certificate, time.Time, error) {
	info, err := os.Stat(files.Cert)
	if err != nil {
		return nil, time.Time{}, err
	}
	pair, err := fileowner.ReadPair(files.Cert, files.Key)
	return &pair, info.ModTime(), err
}
