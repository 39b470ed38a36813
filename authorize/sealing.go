package authorize

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/gofrs/flock"
)

// seal returns the sealer for what is to be kept, nil for plain files. Without a key it
// makes one.
func (s *store) seal() (*sealer, error) {
	if s.mode == "file" {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealer != nil || s.plain {
		return s.sealer, nil
	}
	sealer, err := newSealer(s.ring)
	if errors.Is(err, ErrNoKey) {
		sealer, err = s.firstSealer()
	}
	switch {
	case err == nil:
		s.sealer = sealer
		return sealer, nil
	case s.mode == "keyring":
		return nil, failf(err, "the keyring cannot be used (%s); unlock it, or set auth.store to file", clip(err.Error()))
	}
	s.plain = true
	s.log.Info().Str("cause", clip(err.Error())).Msg("no keyring can be used: logins are kept in files that only you can read")
	return nil, nil
}

// firstSealer makes the key, once: two processes may have their first sign-ins at the same
// time, at different servers.
func (s *store) firstSealer() (*sealer, error) {
	l := flock.New(s.path("keyring", lockFile), flock.SetPermissions(0o600))
	if err := l.Lock(); err != nil {
		return nil, err
	}
	defer l.Close()
	sealer, err := newSealer(s.ring)
	if !errors.Is(err, ErrNoKey) {
		return sealer, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	if err := s.ring.Set(base64.StdEncoding.EncodeToString(key)); err != nil {
		return nil, err
	}
	return newSealer(s.ring) // what is there is what others will find
}

// unsealEvery is how often a keyring is asked that did not open: it may ask the person.
const unsealEvery = 30 * time.Second

// unseal returns the sealer for what was kept. A keyring that was locked may be open by now.
func (s *store) unseal() (*sealer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sealer != nil:
		return s.sealer, nil
	case s.mode == "file":
		return nil, errors.New("auth.store is file")
	case time.Since(s.asked) < unsealEvery:
		return nil, s.unopened
	}
	sealer, err := newSealer(s.ring)
	s.asked, s.unopened = time.Now(), err
	if err == nil {
		s.sealer, s.plain = sealer, false
	}
	return sealer, err
}
