package store_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/sessionstest"
	"github.com/mcpbridge/bridge/sessions/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

func TestMemoryKeepsTheContract(t *testing.T) {
	sessionstest.Run(t, sessionstest.Engine{Open: func(*testing.T) store.Store { return store.NewMemory(1000) }})
}

func TestSealedKeepsTheContract(t *testing.T) {
	sessionstest.Run(t, sessionstest.Engine{Open: func(t *testing.T) store.Store { return seal(t, store.NewMemory(1000), 1) }})
}

// seal puts a seal around a store, with the keys of these numbers.
func seal(t *testing.T, inner store.Store, numbers ...byte) *store.Sealed {
	t.Helper()
	var keys []store.Key
	for _, n := range numbers {
		keys = append(keys, store.Key{n})
	}
	s, err := store.NewSealed(inner, keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s store.Store, session, id, value string) {
	t.Helper()
	err := s.Commit(background, session, store.Change{Kind: store.Flow, ID: id, Replaces: store.Any, TTL: time.Hour, Value: []byte(value)})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a flow's value and why it can't be read.
func read(t *testing.T, s store.Store, session, id string) (string, error) {
	t.Helper()
	r, err := s.Get(background, store.Address{Session: session, Kind: store.Flow, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Load(background, session)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if l.ID == id && (!bytes.Equal(l.Value, r.Value) || !errors.Is(l.Err, r.Err)) {
			t.Errorf("Load says %q, %v; Get says %q, %v", l.Value, l.Err, r.Value, r.Err)
		}
	}
	return string(r.Value), r.Err
}

func wantSealed(t *testing.T, s store.Store, session, id string, why error) {
	t.Helper()
	if value, err := read(t, s, session, id); !errors.Is(err, why) || value != "" {
		t.Errorf("got %q, %v; want %v", value, err, why)
	}
}

func TestMemoryForgetsTheSessionThatWasUsedLeastRecently(t *testing.T) {
	m := store.NewMemory(2)
	put(t, m, "a", "f", "1")
	put(t, m, "b", "f", "1")
	_, _ = read(t, m, "a", "f")
	put(t, m, "c", "f", "1")
	if list, _ := m.Load(background, "b"); len(list) > 0 {
		t.Error("b is still there")
	}
	if list, _ := m.Load(background, "a"); len(list) == 0 {
		t.Error("a is gone")
	}
}

func TestWhatIsSealedCannotBeRead(t *testing.T) {
	inner := store.NewMemory(10)
	sealed := seal(t, inner, 1)
	put(t, sealed, "s", "f", "a person's answer")
	if raw, _ := read(t, inner, "s", "f"); strings.Contains(raw, "answer") {
		t.Error("the value can be read")
	}
	first, _ := read(t, inner, "s", "f")
	put(t, sealed, "s", "f", "a person's answer")
	if again, _ := read(t, inner, "s", "f"); again == first {
		t.Error("the same value looks the same")
	}
}

func TestKeysRotate(t *testing.T) {
	inner := store.NewMemory(10)
	put(t, seal(t, inner, 1), "s", "f", "old")
	rotating := seal(t, inner, 2, 1)
	if value, err := read(t, rotating, "s", "f"); value != "old" || err != nil {
		t.Errorf("got %q, %v", value, err)
	}
	wantOlder := func(want int) {
		t.Helper()
		if found, err := store.Verify(t.Context(), rotating, 10); err != nil || found.Older != want {
			t.Errorf("another key than the first is needed for %d records, %v", found.Older, err)
		}
	}
	wantOlder(1)
	put(t, rotating, "s", "f", "new")
	wantOlder(0)
	wantSealed(t, seal(t, inner, 1), "s", "f", store.ErrForeign)
	if value, err := read(t, seal(t, inner, 2), "s", "f"); value != "new" || err != nil {
		t.Errorf("the first key does not seal: got %q, %v", value, err)
	}
}

func TestRecordsThatWereMovedOrChangedAreRefused(t *testing.T) {
	inner := store.NewMemory(10)
	sealed := seal(t, inner, 1)
	put(t, sealed, "s", "f", "value")
	raw, _ := read(t, inner, "s", "f")

	put(t, inner, "s", "g", raw)
	wantSealed(t, sealed, "s", "g", store.ErrForeign)
	put(t, inner, "other", "f", raw)
	wantSealed(t, sealed, "other", "f", store.ErrForeign)
	for i := range raw {
		changed := []byte(raw)
		changed[i] ^= 0x80
		put(t, inner, "s", "f", string(changed))
		why := store.ErrForeign
		if i == 0 {
			why = store.ErrNewer // the format's byte
		}
		wantSealed(t, sealed, "s", "f", why)
	}
	for n := range len(raw) {
		put(t, inner, "s", "f", raw[:n])
		wantSealed(t, sealed, "s", "f", store.ErrForeign)
	}
}

func TestRecordsOfANewerVersionAreLeftAlone(t *testing.T) {
	inner := store.NewMemory(10)
	put(t, inner, "s", "f", "\x02of tomorrow")
	sealed := seal(t, inner, 1)
	wantSealed(t, sealed, "s", "f", store.ErrNewer)
	err := sealed.Commit(background, "s", store.Change{Kind: store.Flow, ID: "f", TTL: time.Hour, Value: []byte("of today")})
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if raw, _ := read(t, inner, "s", "f"); raw != "\x02of tomorrow" {
		t.Errorf("it became %q", raw)
	}
}

func TestKeysAreReadFromLines(t *testing.T) {
	one, two := store.Key{1}, store.Key{2}
	encode := func(k store.Key) string { return base64.StdEncoding.EncodeToString(k[:]) }
	keys, err := store.ParseKeys([]byte("# of May\r\n" + encode(two) + "\r\n\n  " + encode(one) + "\n"))
	if err != nil || len(keys) != 2 || keys[0] != two || keys[1] != one {
		t.Errorf("got %d keys, %v", len(keys), err)
	}
	for name, text := range map[string]string{
		"nothing": "", "a comment": "# later\n", "no base64": "secret!\n", "a short key": "c2VjcmV0\n", "a long one": encode(one) + encode(two),
	} {
		if _, err := store.ParseKeys([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "c2V") {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
}

func TestAKeyIsMadeOnceAndForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.keys")
	first, err := store.EnsureKeys(path)
	if err != nil || len(first) != 1 || first[0] == (store.Key{}) {
		t.Fatalf("got %d keys, %v", len(first), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	again, err := store.EnsureKeys(path)
	if err != nil || again[0] != first[0] {
		t.Errorf("another key, %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left %v", entries)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.EnsureKeys(path); err == nil {
		t.Error("an empty file of keys passes")
	}
}

func TestNamesTellNothingOfIDs(t *testing.T) {
	if a, b := store.Name("A"), store.Name("B"); a == b || len(a) != 32 || a != store.Name("A") {
		t.Errorf("got %s and %s", a, b)
	}
}

// Who names a file of keys that is not there is told how to make it, and of one that cannot be made its own name.
func TestMissingKeysAreExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	want := "there is no file " + path + "; make one with: (umask 077; openssl rand -base64 32 > " + path + ")"
	if _, err := store.ReadKeys(path); err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	path = filepath.Join(path, "s.keys")
	if _, err := store.EnsureKeys(path); err == nil || err.Error() != path+" cannot be made: no such file or directory" {
		t.Errorf("got %v", err)
	}
}
