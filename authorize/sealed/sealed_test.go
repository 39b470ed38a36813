package sealed

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
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
// TestASealedFileIsBoundToItsOpenPart: who can write the file, and has no key, cannot have
// what is sealed sent elsewhere. What an older bridge has sealed is opened.
func TestASealedFileIsBoundToItsOpenPart(t *testing.T) {
	d, err := Open(Options{Path: t.TempDir(), Mode: "keyring", Keys: &ring{}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ Tokens, Name string }
	at := place{"https://login.example.com/t?a=1&b=<2>", "Zoë\u2028"}
	if err := d.Write("a.login", "login", at, "hush"); err != nil {
		t.Fatal(err)
	}
	read := func() (string, error) {
		var got place
		var secret string
		err := d.Read("a.login", &got, &secret)
		return secret, err
	}
	if secret, err := read(); err != nil || secret != "hush" {
		t.Fatalf("%q, %v", secret, err)
	}
	whole, err := os.ReadFile(d.Path("a.login"))
	if err != nil {
		t.Fatal(err)
	}
	for before, after := range map[string]string{"login.example.com": "evil.example.com", `"version": 2`: `"version": 1`, `"open"`: `"closed"`} {
		changed := strings.Replace(string(whole), before, after, 1)
		if err := d.Replace("a.login", []byte(changed)); err != nil || changed == string(whole) {
			t.Fatalf("%s is not there, %v", before, err)
		}
		if secret, err := read(); err == nil || secret != "" {
			t.Errorf("with %s it opens: %q", after, secret)
		}
	}
	older, err := json.Marshal(envelope{Version: 1, Kind: "login", Open: []byte(`{}`), Sealed: d.sealer.seal([]byte(`"old"`), "a.login")})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Replace("a.login", older); err != nil {
		t.Fatal(err)
	}
	if secret, err := read(); err != nil || secret != "old" {
		t.Errorf("an older one: %q, %v", secret, err)
	}
}

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

// What every user may write to is nobody's login.
func TestAFileThatOthersCanWriteIsNotRead(t *testing.T) {
	d, err := Open(Options{Path: t.TempDir(), Mode: "file", Log: zerolog.Nop()})
	if err == nil {
		err = d.Write("a.login", "login", struct{}{}, "hush")
	}
	if err != nil {
		t.Fatal(err)
	}
	var open struct{}
	var secret string
	if err := d.Read("a.login", &open, &secret); err != nil || secret != "hush" {
		t.Fatalf("%q, %v", secret, err)
	}
	if runtime.GOOS == "windows" {
		return // has no such modes
	}
	if err := os.Chmod(d.Path("a.login"), 0o666); err != nil {
		t.Fatal(err)
	}
	secret = ""
	if err := d.Read("a.login", &open, &secret); err == nil || secret != "" || !strings.Contains(err.Error(), "every user") {
		t.Errorf("%q, %v", secret, err)
	}
}
