package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcpbridge/bridge/internal/clip"
)

// sealer encrypts with AES-256-GCM. The name of what is sealed is bound to it, so
// that nobody can put one file's content into another, and so is what stands beside it.
type sealer struct{ aead cipher.AEAD }

const keySize = 32

// newSealer returns the sealer with the keyring's key, or ErrNoKey.
func newSealer(ring Keyring) (*sealer, error) {
	text, err := ring.Get()
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("the key in the keyring (service %s) is damaged; remove it there, and sign in again", keyringService)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead}, err
}

func (s *sealer) seal(plain []byte, bound string) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(nonce, nonce, plain, []byte(bound))
}

func (s *sealer) open(sealed []byte, bound string) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("it is too short")
	}
	return s.aead.Open(nil, sealed[:n], sealed[n:], []byte(bound))
}

// unusable is the error where a keyring is demanded that cannot be used.
type unusable struct{ error }

func (u *unusable) Error() string {
	return fmt.Sprintf("the keyring cannot be used (%s); unlock it, or set auth.store to file", clip.Line(u.error.Error()))
}

func (u *unusable) Unwrap() error { return u.error }

// seal returns the sealer for what is to be kept, nil for plain files. Without a key it
// makes one.
func (d *Dir) seal() (*sealer, error) {
	if d.mode == "file" {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealer != nil || d.plain {
		return d.sealer, nil
	}
	sealer, err := newSealer(d.ring)
	if errors.Is(err, ErrNoKey) {
		sealer, err = d.firstSealer()
	}
	switch {
	case err == nil:
		d.sealer = sealer
		return sealer, nil
	case d.mode == "keyring":
		return nil, &unusable{err}
	}
	d.plain = true
	d.log.Info().Str("cause", clip.Line(err.Error())).Msg("no keyring can be used: logins are kept in files that only you can read")
	return nil, nil
}

// firstSealer makes the key, once: two processes may have their first sign-ins at the same
// time, at different servers.
func (d *Dir) firstSealer() (*sealer, error) {
	l := flock.New(d.Path("keyring.lock"), flock.SetPermissions(0o600))
	if err := l.Lock(); err != nil {
		return nil, err
	}
	defer l.Close()
	sealer, err := newSealer(d.ring)
	if !errors.Is(err, ErrNoKey) {
		return sealer, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	if err := d.ring.Set(base64.StdEncoding.EncodeToString(key)); err != nil {
		return nil, err
	}
	return newSealer(d.ring) // what is there is what others will find
}

// unsealEvery is how often a keyring is asked that did not open: it may ask the person.
const unsealEvery = 30 * time.Second

// unseal returns the sealer for what was kept. A keyring that was locked may be open by now.
func (d *Dir) unseal() (*sealer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.sealer != nil:
		return d.sealer, nil
	case d.mode == "file":
		return nil, errors.New("auth.store is file")
	case time.Since(d.asked) < unsealEvery:
		return nil, d.unopened
	}
	sealer, err := newSealer(d.ring)
	d.asked, d.unopened = time.Now(), err
	if err == nil {
		d.sealer, d.plain = sealer, false
	}
	return sealer, err
}
