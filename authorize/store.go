package authorize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/authorize/sealed"
)

// store keeps the logins and pending sign-ins of one server as sealed files, one per
// issuer.
type store struct {
	*sealed.Dir
	server string // whose logins these are
	issuer string // the only one whose logins and sign-ins count; "": any
	log    zerolog.Logger
	held   atomic.Pointer[held]
}

// held is a login that could not be saved, and the access token of the kept one that it renews.
type held struct {
	login  *Login
	before string
}

// Kinds of files, by the end of their names.
const (
	loginFile   = ".login"
	pendingFile = ".pending"
	openedFile  = ".opened" // its time is when a browser was last asked to open something
	noteFile    = ".json"
)

func newStore(opt *Options) (*store, error) {
	dir, err := sealed.Open(sealed.Options{Path: opt.Dir, Mode: opt.Store, Keys: opt.Keys, Log: opt.Log})
	if err != nil {
		return nil, failf(err, "the place for logins cannot be made (%v); set auth.dir to a directory that you may write to", err)
	}
	return &store{Dir: dir, server: opt.Server, issuer: opt.Issuer, log: opt.Log}, nil
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

// counts reports whether what an issuer gave may be used.
func (s *store) counts(issuer string) bool { return s.issuer == "" || sameIssuer(s.issuer, issuer) }

// load returns the newest login of the server that counts, nil without one.
func (s *store) load() (*Login, error) {
	l, err := s.newest(s.counts)
	if held := s.held.Load(); held != nil && l != nil && l.Access == held.before {
		return held.login, nil
	}
	return l, err
}

// hold has a login that could not be saved take the place of the one that it renews, until
// either is saved.
func (s *store) hold(l, renewed *Login) {
	before := renewed.Access
	if was := s.held.Load(); was != nil && was.login == renewed { // which is not kept either
		before = was.before
	}
	s.held.Store(&held{l, before})
}

// newest returns the newest login of the server among those of certain issuers.
func (s *store) newest(of func(issuer string) bool) (*Login, error) {
	names, err := s.Names(key(s.server), loginFile)
	if err != nil {
		return nil, err
	}
	var newest *Login
	for _, name := range names {
		l := &Login{}
		switch err := s.Read(name, l, &l.secrets); {
		case errors.Is(err, sealed.ErrSealed):
			return nil, failf(err, "the login of %s cannot be read: %v. Unlock the keyring, or run `bridge logout %s` and sign in again", hostOf(s.server), err, Shown(s.server))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			s.log.Warn().Err(err).Msg("a login cannot be read: it counts as none")
			continue
		case err != nil:
			continue
		}
		if l.Server == s.server && of(l.Issuer) && (newest == nil || l.Updated.After(newest.Updated)) {
			newest = l
		}
	}
	return newest, nil
}

// save keeps a login, for every process to see.
func (s *store) save(l *Login) error {
	err := s.keep(key(s.server)+"-"+digest(l.Issuer)+loginFile, "login", l, l.secrets)
	if err == nil {
		s.held.Store(nil)
	}
	return err
}

// remove deletes every file of the server but the locks, which others may hold.
func (s *store) remove() error {
	var errs []error
	for _, suffix := range []string{loginFile, pendingFile, openedFile, noteFile} {
		names, err := s.Names(key(s.server), suffix)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, os.Remove(s.Path(name)))
		}
	}
	return errors.Join(errs...)
}

// keep writes a sealed file, and words for a person why it could not be.
func (s *store) keep(name, kind string, open, secret any) error {
	if err := s.Write(name, kind, open, secret); err != nil {
		return failf(err, "%v", err)
	}
	return nil
}

// lock waits for the lock on the server's logins.
func (s *store) lock(ctx context.Context) (unlock func(), err error) {
	return s.Lock(ctx, key(s.server)+".refresh.lock")
}

// tryLead takes the lock of the one process that has the person sign in, if it is
// free.
func (s *store) tryLead() (unlock func(), ok bool, err error) {
	return s.TryLock(key(s.server) + ".sign-in.lock")
}

// note reads what Agent.Note kept.
func (s *store) note(name string) []byte {
	content, err := s.Content(key(s.server) + "." + name + noteFile)
	if err != nil {
		return nil
	}
	return content
}
