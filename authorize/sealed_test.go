package authorize

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/authorize/sealed"
	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// ring is a keyring for tests.
type ring struct {
	value string
	err   error
}

func (r *ring) Get() (string, error) {
	if r.err == nil && r.value == "" {
		return "", sealed.ErrNoKey
	}
	return r.value, r.err
}

func (r *ring) Set(value string) error { r.value = value; return r.err }

func TestLoginsAreSealed(t *testing.T) {
	i := issuer.New(t)
	keys := &ring{}
	a := newAgent(t, i, func(o *Options) { o.Store, o.Keys = "auto", keys })
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	list, err := List(a.opt.Dir)
	if err != nil || len(list) != 1 || !list[0].Sealed {
		t.Fatalf("kept %+v %v", list, err)
	}
	text, err := os.ReadFile(list[0].File)
	if err != nil || strings.Contains(string(text), a.login.Load().Access) || strings.Contains(string(text), a.login.Load().Refresh) {
		t.Error("the file shows the tokens", err)
	}
	again := newAgent(t, i, func(o *Options) { o.Store, o.Keys, o.Dir = "keyring", keys, a.opt.Dir })
	if err := call(t, again); err != nil || i.Get(&i.Tabs) != 1 {
		t.Errorf("after a restart: %v, %d tabs", err, i.Tabs)
	}

	locked := newAgent(t, i, func(o *Options) { o.Store, o.Keys, o.Dir = "auto", &ring{err: errors.New("it is locked")}, a.opt.Dir })
	if err := call(t, locked); err == nil || !strings.Contains(err.Error(), "Unlock the keyring") || i.Get(&i.Tabs) != 1 {
		t.Errorf("with the keyring locked: %v, %d tabs", err, i.Tabs)
	}
}

// Whose keyring is locked is told what to do.
func TestAKeyringThatIsLocked(t *testing.T) {
	i, keys := issuer.New(t), &ring{}
	a := newAgent(t, i, func(o *Options) { o.Store, o.Keys = "auto", keys })
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	keys.err = errors.New("it is locked")
	later := newAgent(t, i, func(o *Options) { o.Store, o.Keys, o.Dir = "auto", keys, a.opt.Dir })
	if err := call(t, later); err == nil || !strings.Contains(err.Error(), "(it is locked). Unlock the keyring") {
		t.Fatalf("told %v", err)
	}
}

func TestWithoutKeyring(t *testing.T) {
	i := issuer.New(t)
	none := &ring{err: errors.New("no Secret Service")}
	a := newAgent(t, i, func(o *Options) { o.Store, o.Keys = "auto", none })
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	strict := newAgent(t, i, func(o *Options) { o.Store, o.Keys = "keyring", none })
	if err := call(t, strict); err == nil || !strings.Contains(err.Error(), "set auth.store to file") {
		t.Errorf("told %v", err)
	}
}
