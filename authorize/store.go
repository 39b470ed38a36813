package authorize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"
)

// store keeps logins and pending sign-ins as files, one per issuer and server,
// which all processes of a person share. What is secret in them is sealed where
// there is a keyring.
type store struct {
	dir    string
	mode   string // auto, file, keyring
	server string // whose logins these are
	ring   Keyring
	log    zerolog.Logger

	mu     sync.Mutex
	sealer *sealer
	plain  bool // auto found no keyring, and has said so

	asked    time.Time // when the keyring was asked last for what is sealed
	unopened error     // what came of it
}

// Kinds of files, by the end of their names.
const (
	loginFile   = ".login"
	pendingFile = ".pending"
	lockFile    = ".lock"
	openedFile  = ".opened" // its time is when a browser was last asked to open something
	noteFile    = ".json"
)

// envelope is the form of every file that holds secrets.
type envelope struct {
	Version int             `json:"version"`
	Kind    string          `json:"kind"` // login or pending
	Open    json.RawMessage `json:"open,omitempty"`
	Plain   json.RawMessage `json:"secrets,omitempty"`
	Sealed  []byte          `json:"sealed,omitempty"`
}

const fileVersion = 1

// errSealed is about a file whose key is not to be had.
var errSealed = errors.New("the login is sealed with a key of the keyring, which cannot be opened")

func newStore(opt *Options) (*store, error) {
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, failf(err, "the place for logins cannot be made (%v); set auth.dir to a directory that you may write to", err)
	}
	return &store{dir: opt.Dir, mode: opt.Store, server: opt.Server, ring: opt.Keys, log: opt.Log}, nil
}

// key names the files of a server: its host, for people, and a digest.
func key(server string) string {
	host := "server"
	if u, err := url.Parse(server); err == nil && u.Hostname() != "" {
		host = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
				return r
			}
			return '_'
		}, strings.ToLower(u.Hostname()))
	}
	return host[:min(len(host), 80)] + "-" + digest(server)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (s *store) path(parts ...string) string { return filepath.Join(s.dir, strings.Join(parts, "")) }

// write keeps open and secret under a name. The file appears whole, with its
// final mode, or not at all.
func (s *store) write(name, kind string, open, secret any) error {
	file := envelope{Version: fileVersion, Kind: kind}
	var err error
	if file.Open, err = json.Marshal(open); err != nil {
		return err
	}
	text, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	sealer, err := s.seal()
	if err != nil {
		return err
	}
	if sealer == nil {
		file.Plain = text
	} else {
		file.Sealed = sealer.seal(text, name)
	}
	all, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return s.replace(name, all)
}

func (s *store) replace(name string, content []byte) error {
	tmp, err := os.CreateTemp(s.dir, ".new-*") // 0600
	if err != nil {
		return failf(err, "the login cannot be kept: %v", err)
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), s.path(name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return failf(err, "the login cannot be kept: %v", err)
	}
	return nil
}

// read is the reverse of write. A secret of nil reads the open part only.
func (s *store) read(name string, open, secret any) error {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return err
	}
	var file envelope
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s is damaged: %w", name, err)
	}
	if file.Version > fileVersion {
		return fmt.Errorf("%s was written by a newer version of the bridge", name)
	}
	if err := json.Unmarshal(file.Open, open); err != nil || secret == nil {
		return err
	}
	if file.Sealed == nil && s.mode == "keyring" {
		return fmt.Errorf("%s is not sealed, as auth.store keyring wants it", name)
	}
	if file.Sealed != nil {
		sealer, err := s.unseal()
		if err != nil {
			return fmt.Errorf("%w (%s)", errSealed, clip(err.Error()))
		}
		if file.Plain, err = sealer.open(file.Sealed, name); err != nil {
			return fmt.Errorf("%w (%s)", errSealed, clip(err.Error()))
		}
	}
	return json.Unmarshal(file.Plain, secret)
}

// load returns the newest login of the server, nil without one.
func (s *store) load() (*Login, error) {
	names, err := s.names(key(s.server), loginFile)
	if err != nil {
		return nil, err
	}
	var newest *Login
	for _, name := range names {
		l := &Login{}
		switch err := s.read(name, l, &l.secrets); {
		case errors.Is(err, errSealed):
			return nil, failf(err, "the login of %s cannot be read: %v. Unlock the keyring, or run `bridge logout %s` and sign in again", hostOf(s.server), err, Shown(s.server))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			s.log.Warn().Err(err).Msg("a login cannot be read: it counts as none")
			continue
		case err != nil:
			continue
		}
		if l.Server == s.server && (newest == nil || l.Updated.After(newest.Updated)) {
			newest = l
		}
	}
	return newest, nil
}

// save keeps a login, for every process to see.
func (s *store) save(l *Login) error {
	return s.write(key(s.server)+"-"+digest(l.Issuer)+loginFile, "login", l, l.secrets)
}

// names lists the files whose names begin and end so, in order.
func (s *store) names(prefix, suffix string) ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// remove deletes every file of the server but the locks, which others may hold.
func (s *store) remove() error {
	var errs []error
	for _, suffix := range []string{loginFile, pendingFile, openedFile, noteFile} {
		names, err := s.names(key(s.server), suffix)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, os.Remove(s.path(name)))
		}
	}
	return errors.Join(errs...)
}

// lockEvery is how often a lock that another process holds is tried.
const lockEvery = 50 * time.Millisecond

// lock waits for the lock on the server's logins. The system lets go of it when
// this process dies, so nothing is ever stale.
func (s *store) lock(ctx context.Context) (unlock func(), err error) {
	l := flock.New(s.path(key(s.server), ".refresh", lockFile), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockEvery); err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil
}

// tryLead takes the lock of the one process that has the person sign in, if it is
// free.
func (s *store) tryLead() (unlock func(), ok bool, err error) {
	l := flock.New(s.path(key(s.server), ".sign-in", lockFile), flock.SetPermissions(0o600))
	if ok, err = l.TryLock(); err != nil || !ok {
		return nil, false, err
	}
	return func() { _ = l.Close() }, true, nil
}

// note reads what Agent.Note kept.
func (s *store) note(name string) []byte {
	content, err := os.ReadFile(s.path(key(s.server), ".", name, noteFile))
	if err != nil {
		return nil
	}
	return content
}
