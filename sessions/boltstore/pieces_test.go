package boltstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// piecesIn counts what the file has in pieces.
func piecesIn(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket(piecesName); b != nil {
			n = b.Stats().KeyN
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLongValuesLieInPieces(t *testing.T) {
	path, opt := pathIn(t), Options{Relaxed: true, Direct: true}
	s := open(t, path, opt)
	name := store.Name("s")
	version := uint64(0)
	at := store.Address{Session: name, Kind: store.Flow, ID: "f"}
	for i, size := range []int{0, pieceSize - valueHead, pieceSize - valueHead + 1, pieceSize, pieceSize + 1, 5 * pieceSize, 5*pieceSize + 1, 100, 3 * pieceSize} {
		value := strings.Repeat(string(rune('a'+i)), size)
		c := put("f", value)
		c.Replaces = version
		commit(t, s, name, c)
		version++
		if i%2 == 0 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path, opt)
		}
		r, err := s.Get(background, at)
		if err != nil || string(r.Value) != value || r.Version != version {
			t.Fatalf("%d bytes: read %d of version %d: %v", size, len(r.Value), r.Version, err)
		}
		if n, err := s.Size(background, at); err != nil || n != size {
			t.Errorf("%d bytes: the size is %d: %v", size, n, err)
		}
		all, err := s.Load(background, name)
		if err != nil || len(all) != 1 || string(all[0].Value) != value || all[0].Version != version {
			t.Errorf("%d bytes: the session has %d records: %v", size, len(all), err)
		}
		heads, err := s.Glance(background, name)
		if err != nil || len(heads) != 1 || heads[0].Value != nil || heads[0].Version != version || heads[0].TTL <= 0 {
			t.Errorf("%d bytes: at a glance %v: %v", size, heads, err)
		}
		want := 0
		if size+valueHead > pieceSize {
			want = (size + pieceSize - 1) / pieceSize
		}
		if n := piecesIn(t, s); n != want {
			t.Errorf("%d bytes: %d pieces, want %d", size, n, want)
		}
	}
	if err := s.End(background, name); err != nil {
		t.Fatal(err)
	}
	if n := piecesIn(t, s); n != 0 {
		t.Errorf("%d pieces of a session that has ended", n)
	}
}

// Keys that begin alike, in one session: none has another one's pieces.
func TestPiecesAreTheirRecords(t *testing.T) {
	s := open(t, pathIn(t), Options{Relaxed: true, Direct: true})
	name := store.Name("s")
	ids := []string{"1", "12", "1\x00", "1\x00\x00\x00\x00"}
	for i, id := range ids {
		commit(t, s, name, put(id, strings.Repeat(string(rune('a'+i)), (i+2)*pieceSize)))
	}
	commit(t, s, name, store.Change{Kind: store.Flow, ID: "1", Replaces: 1, Delete: true})
	for i, id := range ids[1:] {
		r, err := s.Get(background, store.Address{Session: name, Kind: store.Flow, ID: id})
		if want := strings.Repeat(string(rune('b'+i)), (i+3)*pieceSize); err != nil || string(r.Value) != want {
			t.Errorf("%q: %d bytes: %v", id, len(r.Value), err)
		}
	}
	if n := piecesIn(t, s); n != 3+4+5 {
		t.Errorf("%d pieces", n)
	}
}

func TestATouchedSessionKeepsItsLongRecord(t *testing.T) {
	s := open(t, pathIn(t), Options{Relaxed: true, Direct: true})
	name, value := store.Name("s"), strings.Repeat("v", 3*pieceSize)
	commit(t, s, name, store.Change{Kind: store.Session, TTL: time.Minute, Value: []byte(value)})
	if err := s.Touch(background, store.Touch{Session: name, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(background, store.Address{Session: name, Kind: store.Session}); err != nil || string(r.Value) != value || r.TTL < 59*time.Minute {
		t.Errorf("%d bytes for %v: %v", len(r.Value), r.TTL, err)
	}
}

func TestAValueWithoutAllItsPiecesIsDamaged(t *testing.T) {
	s := open(t, pathIn(t), Options{Relaxed: true, Direct: true})
	name := store.Name("s")
	commit(t, s, name, put("f", strings.Repeat("v", 3*pieceSize)))
	at := store.Address{Session: name, Kind: store.Flow, ID: "f"}
	err := s.update(func(tx *bolt.Tx) error { return tx.Bucket(piecesName).Delete(pieceKey(keyOf(at), 1)) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(background, at); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Load(background, name); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Load: %v", err)
	}
}

// A client that filled the file with short calls, ended all but a few, and went on with longer ones, again and again, had it become many
// times as large as what it held, and the disk full.
func TestAFileOfScatteredRecordsStaysSmall(t *testing.T) {
	const most = 56 << 20 // bytes that are held at a time
	path := pathIn(t)
	s := open(t, path, Options{Relaxed: true})
	type call struct{ session, size int }
	var held []call
	bytes, next := 0, 0
	sizes := []int{5 << 10, 50 << 10, 500 << 10, 3900 << 10, 5 << 10, 50 << 10, 500 << 10, 3900 << 10, 5 << 10, 50 << 10, 500 << 10, 3900 << 10}
	for i, size := range sizes {
		for ; bytes+size <= most; next++ {
			commit(t, s, store.Name(fmt.Sprint(next)), put("f", strings.Repeat("x", size)))
			held, bytes = append(held, call{next, size}), bytes+size
		}
		if i == len(sizes)-1 {
			break
		}
		var kept []call
		room := 0
		for n, c := range held {
			room += c.size
			if sizes[i+1] > size && room >= sizes[i+1] || sizes[i+1] < size && n%40 == 0 { // what is free before this one is too short for the next size
				kept, room = append(kept, c), 0
				continue
			}
			if err := s.End(background, store.Name(fmt.Sprint(c.session))); err != nil {
				t.Fatal(err)
			}
			bytes -= c.size
		}
		held = kept
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f times as large", float64(info.Size())/most)
	if info.Size() > 2*most {
		t.Errorf("the file has %d MiB for %d that were ever held at a time", info.Size()>>20, most>>20)
	}
}
