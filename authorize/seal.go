package authorize

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// Keyring keeps the key of the store for the person who is logged in to this
// machine.
type Keyring interface {
	// Get returns what was set, or ErrNoKey.
	Get() (string, error)
	Set(value string) error
}

// ErrNoKey is returned by a Keyring that works, but holds nothing yet.
var ErrNoKey = errors.New("the keyring holds no key of the bridge")

// systemKeyring is the keyring of the system: Keychain, Credential Manager, or
// the Secret Service. Windows takes only short values: hence a key, not logins.
type systemKeyring struct{}

const (
	keyringService = "mcp-bridge"
	keyringUser    = "login store"
)

// keyringTimeout bounds the wait for a keyring that asks the person to unlock it.
const keyringTimeout = 30 * time.Second

// Get implements Keyring.
func (systemKeyring) Get() (value string, err error) {
	err = promptly(func() (err error) {
		value, err = keyring.Get(keyringService, keyringUser)
		return err
	})
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNoKey
	}
	return value, err
}

// Set implements Keyring.
func (systemKeyring) Set(value string) error {
	return promptly(func() error { return keyring.Set(keyringService, keyringUser, value) })
}

// promptly gives up on a keyring that does not answer. What waits for it is left
// behind: nothing can end it.
func promptly(ask func() error) error {
	done := make(chan error, 1)
	go func() { done <- ask() }()
	select {
	case err := <-done:
		return err
	case <-time.After(keyringTimeout):
		return errors.New("the keyring does not answer")
	}
}

// sealer encrypts with AES-256-GCM. The name of what is sealed is bound to it, so
// that nobody can put one file's content into another.
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

func (s *sealer) seal(plain []byte, name string) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(nonce, nonce, plain, []byte(name))
}

func (s *sealer) open(sealed []byte, name string) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("it is too short")
	}
	return s.aead.Open(nil, sealed[:n], sealed[n:], []byte(name))
}
