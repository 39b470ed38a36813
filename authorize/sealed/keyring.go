package sealed

import (
	"errors"
	"time"

	"github.com/zalando/go-keyring"
)

// Keyring keeps the key of the files for the person who is logged in to this
// machine.
type Keyring interface {
	// Get returns what was set, or ErrNoKey.
	Get() (string, error)
	Set(value string) error
}

// ErrNoKey is returned by a Keyring that works, but holds nothing yet.
var ErrNoKey = errors.New("the keyring holds no key of the bridge")

// System is the keyring of the system: Keychain, Credential Manager, or
// the Secret Service. Windows takes only short values: hence a key, not logins.
type System struct{}

const (
	keyringService = "mcp-bridge"
	keyringUser    = "login store"
)

// keyringTimeout bounds the wait for a keyring that asks the person to unlock it.
const keyringTimeout = 30 * time.Second

// Get implements Keyring.
func (System) Get() (value string, err error) {
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
func (System) Set(value string) error {
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
