package edge

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/internal/smallfile"
)

// Files name a listener's certificate chain and its private key, PEM. The zero
// value stands for plain HTTP.
type Files struct{ Cert, Key string }

// Check reports why the files could not serve a listener.
func (f Files) Check() error {
	_, err := load(f)
	return err
}

// version tells the files of one pair from those that stand there later.
type version [2]os.FileInfo

func versionOf(f Files) (v version, err error) {
	for i, name := range []string{f.Cert, f.Key} {
		if v[i], err = os.Stat(name); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (v version) is(other version) bool {
	for i := range v {
		if v[i] == nil || other[i] == nil || !os.SameFile(v[i], other[i]) || !v[i].ModTime().Equal(other[i].ModTime()) {
			return false
		}
	}
	return true
}

// loaded is a certificate, and the files that it was read from.
type loaded struct {
	files   Files
	version version
	pair    *tls.Certificate
}

// load says which files an error is about.
func load(f Files) (*loaded, error) {
	v, err := versionOf(f)
	var pair tls.Certificate
	if err == nil {
		pair, err = smallfile.Pair(f.Cert, f.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("tls.cert: the certificate cannot be loaded from %s and %s: %w", f.Cert, f.Key, err)
	}
	return &loaded{f, v, &pair}, nil
}

// reloadEvery is how often the files are looked at, and how long a look may take until the log tells of it.
const reloadEvery = 10 * time.Second

// reloader holds a certificate and reads it anew after its files changed. While the new files do not
// fit together, or cannot be read to their end, it keeps the old certificate.
//
// Handshakes never wait for a file: looks run beside them. One that hangs can be ended by nobody, so
// that the next one does not wait for it, and looks whether other files stand there now.
type reloader struct {
	log     zerolog.Logger
	stop    chan struct{}  // closed to end what watch has begun
	stopped sync.WaitGroup // until it has ended

	mu    sync.Mutex // guards what follows
	now   *loaded
	told  string // the last failure that was logged
	count int    // looks that have begun
	taken int    // the one that came last of those whose outcome counts
	looks map[int]*look
}

// look is one under way.
type look struct {
	began time.Time
	// version is what it reads; the zero value: it has yet to see that.
	version version
}

// newReloader reads the files for the first time.
func newReloader(files Files, log zerolog.Logger) (*reloader, error) {
	now, err := load(files)
	if err != nil {
		return nil, err
	}
	return &reloader{log: log, stop: make(chan struct{}), now: now, looks: map[int]*look{}}, nil
}

// config is that of a listener with the certificate.
func (r *reloader) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			meter.Inside(hello.Conn).Greeted()
			return r.certificate(), nil
		},
	}
}

func (r *reloader) certificate() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.pair
}

// watch looks at the files now and then until close. It waits for no look. A nil reloader does nothing.
func (r *reloader) watch() {
	if r == nil {
		return
	}
	r.stopped.Go(func() {
		tick := time.NewTicker(reloadEvery)
		defer tick.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
				r.look()
			}
		}
	})
}

func (r *reloader) close() {
	if r == nil {
		return
	}
	select {
	case <-r.stop: // it was called before
	default:
		close(r.stop)
	}
	r.stopped.Wait()
}

// look begins one beside whoever calls. done is closed when it has ended, which it need not.
func (r *reloader) look() (done <-chan struct{}) {
	ended := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.looks {
		if time.Since(l.began) >= reloadEvery {
			r.tellLocked(fmt.Sprintf("tls.cert: reading %s and %s hangs; the certificate that was read before stays in use", r.now.files.Cert, r.now.files.Key), nil)
		}
	}
	if len(r.looks) >= smallfile.MaxHanging {
		close(ended)
		return ended
	}
	r.count++
	number, files := r.count, r.now.files
	r.looks[number] = &look{began: time.Now()}
	go func() {
		defer close(ended)
		r.see(number, files)
	}()
	return ended
}

// see is one look.
func (r *reloader) see(number int, files Files) {
	defer r.leave(number)
	if v, err := versionOf(files); err == nil && !r.isNews(number, v) {
		return
	}
	found, err := load(files)
	r.mu.Lock()
	defer r.mu.Unlock()
	if files != r.now.files || number < r.taken {
		return // a later one knows better
	}
	r.taken = number
	if err != nil {
		r.tellLocked("the certificate that was read before stays in use", err)
		return
	}
	r.now, r.told = found, ""
}

// isNews reports whether nobody has read such files, nor is about to. Where a file hangs, this
// keeps all but the first look away from it.
func (r *reloader) isNews(number int, v version) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.looks {
		if v.is(l.version) {
			return false
		}
	}
	r.looks[number].version = v
	return !v.is(r.now.version)
}

func (r *reloader) leave(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.looks, number)
}

// tellLocked logs a failure once, until it is another one.
func (r *reloader) tellLocked(text string, err error) {
	told := text
	if err != nil {
		told += err.Error()
	}
	if told != r.told {
		r.told = told
		r.log.Warn().Err(err).Msg(text)
	}
}

// replace takes a certificate that was read. What looks find that began before does not count.
func (r *reloader) replace(found *loaded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.now, r.taken, r.told = found, r.count, ""
}
