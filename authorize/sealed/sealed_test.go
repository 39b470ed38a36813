package sealed

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// ring is a keyring for tests.
type ring struct {
	value string
	err   error
}

func (r *ring) Get() (string, error) {
	if r.err == nil && r.value == "" {
		return "", ErrNoKey
	}
	return r.value, r.err
}

func (r *ring) Set(value string) error { r.value = value; return r.err }

// First sign-ins at several servers make one key: another one would make what the others
// have kept unreadable.
func TestOneKeyForAll(t *testing.T) {
	keys, dir := &sharedRing{}, t.TempDir()
	var all [10]*Dir
	var wg sync.WaitGroup
	for n := range all {
		all[n] = &Dir{dir: dir, mode: "auto", ring: keys, log: zerolog.Nop()}
		wg.Go(func() {
			if err := all[n].Write(fmt.Sprintf("%d.login", n), "login", struct{}{}, "hush"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := keys.set.Load(); n != 1 {
		t.Errorf("%d keys were made", n)
	}
}

// sharedRing is a keyring for several processes.
type sharedRing struct {
	mu  sync.Mutex
	in  ring
	set atomic.Int32
}

func (r *sharedRing) Get() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.Get()
}

func (r *sharedRing) Set(value string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set.Add(1)
	return r.in.Set(value)
}

// A keyring that was locked is asked again after a while, without a restart.
func TestAKeyringThatIsUnlockedLater(t *testing.T) {
	keys, dir := &ring{}, t.TempDir()
	open := func() *Dir {
		d, err := Open(Options{Path: dir, Mode: "auto", Keys: keys, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if err := open().Write("a.login", "login", "shown", "hush"); err != nil {
		t.Fatal(err)
	}
	keys.err = errors.New("it is locked")
	d := open()
	var shown, secret string
	if err := d.Read("a.login", &shown, &secret); !errors.Is(err, ErrSealed) || !strings.Contains(err.Error(), "(it is locked)") || shown != "shown" {
		t.Errorf("locked: %q, %v", shown, err)
	}
	keys.err = nil
	if err := d.Read("a.login", &shown, &secret); !errors.Is(err, ErrSealed) {
		t.Errorf("it was asked again at once: %v", err)
	}
	d.asked = time.Now().Add(-unsealEvery)
	if err := d.Read("a.login", &shown, &secret); err != nil || secret != "hush" {
		t.Errorf("unlocked: %q, %v", secret, err)
	}
}

// What is sealed under one name is not believed under another.
func TestASealedFileIsBoundToItsName(t *testing.T) {
	d, err := Open(Options{Path: t.TempDir(), Mode: "keyring", Keys: &ring{}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write("a.login", "login", "shown", "hush"); err != nil || !d.IsSealed("a.login") {
		t.Fatal(err)
	}
	if err := os.Rename(d.Path("a.login"), d.Path("b.login")); err != nil {
		t.Fatal(err)
	}
	var shown, secret string
	if err := d.Read("b.login", &shown, &secret); !errors.Is(err, ErrSealed) || secret != "" {
		t.Errorf("%q, %v", secret, err)
	}
	if names, err := d.Names("", ".login"); err != nil || len(names) != 1 || names[0] != "b.login" {
		t.Errorf("%v %v", names, err)
	}
}

// A lock is held by one at a time, also within a process.
func TestALockIsHeldByOne(t *testing.T) {
	d, err := Open(Options{Path: t.TempDir(), Mode: "file"})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock(t.Context(), "a.lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := d.TryLock("a.lock"); ok || err != nil {
		t.Errorf("it was free: %v", err)
	}
	unlock()
	again, ok, err := d.TryLock("a.lock")
	if !ok || err != nil {
		t.Fatalf("it is not free: %v", err)
	}
	again()
}
