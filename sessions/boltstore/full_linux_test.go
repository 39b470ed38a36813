package boltstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/sessions/store"
	"golang.org/x/sys/unix"
)

// TestFullDiskLosesNothingThatWasAcknowledged: a disk of two megabytes fills up. What was
// kept before stays, reading goes on, and when there is room again, so does writing.
func TestFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("left out: this user may not mount a small disk:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sessions.db")
	s := open(t, path, Options{journal: 64 << 10})
	kept := 0
	var full error
	for ; full == nil && kept < 10_000; kept++ {
		full = s.Commit(background, store.Name(fmt.Sprint(kept)), put("f", strings.Repeat("x", 3000)))
	}
	kept-- // the last one was refused
	if full == nil || kept < 10 {
		t.Fatalf("after %d records: %v", kept, full)
	}
	t.Logf("after %d records: %v", kept, full)
	there := func(s *Store) {
		t.Helper()
		for i := range kept {
			if list, err := s.Load(background, store.Name(fmt.Sprint(i))); err != nil || len(list) != 1 {
				t.Fatalf("record %d of %d: %v, %v", i, kept, list, err)
			}
		}
	}
	there(s)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(background, store.Name("later"), put("f", "x")); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	there(open(t, path, Options{}))
}

// TestAFullDiskKeepsNobodyFromEndingSessions: a store on a full disk is opened, read, and gives back
// the room of sessions that are ended, after an orderly end of the process as well as after a crash.
func TestAFullDiskKeepsNobodyFromEndingSessions(t *testing.T) {
	for name, orderly := range map[string]bool{"after an orderly end": true, "after a crash": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
				t.Skip("left out: this user may not mount a small disk:", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			path := filepath.Join(dir, "sessions.db")
			opt := Options{journal: 256 << 10}
			s := open(t, path, opt)
			session := func(i int) string { return store.Name(fmt.Sprint(i / 4)) }
			if disk := s.Disk(); disk < 3<<20 || disk > 4<<20 {
				t.Errorf("of a disk of 4 MiB it is told that it has %d bytes for the file", disk)
			}
			kept := 0
			for err := error(nil); err == nil; kept++ {
				err = s.Commit(background, session(kept), put(fmt.Sprint("f", kept), strings.Repeat("x", 30_000)))
			}
			kept--
			fill(t, filepath.Join(dir, "ballast"))
			if orderly {
				_ = s.Close() // it says that there was no room
			} else {
				_ = s.db.Close() // so that nothing more gets there
			}

			s = open(t, path, opt)
			if r, err := s.Get(background, store.Address{Session: session(kept - 1), Kind: store.Flow, ID: fmt.Sprint("f", kept-1)}); err != nil || len(r.Value) != 30_000 {
				t.Errorf("what was kept last: %d bytes, %v", len(r.Value), err)
			}
			if _, err := s.List(background, "", 10); err != nil {
				t.Errorf("a list: %v", err)
			}
			for i := 4; i < kept; i += 4 {
				if err := s.End(background, session(i)); err != nil {
					t.Fatalf("ending session %d of %d: %v", i/4, kept/4, err)
				}
			}
			if err := s.Commit(background, store.Name("later"), put("f", strings.Repeat("x", 30_000))); err != nil {
				t.Errorf("with room again: %v", err)
			}
			if list, err := s.Load(background, session(0)); err != nil || len(list) != 4 {
				t.Errorf("the session that was not ended has %d records, %v", len(list), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// fill writes a file until the disk has no room left.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	_ = file.Close()
}

// TestSessionsThatTheFileNeverTookAreEndedOnAFullDisk: somebody else has filled the disk before the journal of a young store was full
// for the first time, so that there is nothing in the file whose removal makes room, and what is refused takes none of what is in reserve.
func TestSessionsThatTheFileNeverTookAreEndedOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("left out: this user may not mount a small disk:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "sessions.db")
	opt := Options{journal: 1 << 20}
	s := open(t, path, opt)
	session := func(i int) string { return store.Name(fmt.Sprint(i)) }
	fill(t, filepath.Join(dir, "ballast"))
	sessions := 0
	for err := error(nil); err == nil; sessions++ {
		for n := 0; err == nil && n < 10; n++ {
			err = s.Commit(background, session(sessions), put(fmt.Sprint("f", n), strings.Repeat("x", 3_000)))
		}
	}
	s.short = false // and an end may be the first to find that out
	if err := s.End(background, session(sessions-1)); err != nil {
		t.Errorf("as the disk turns out to be full: %v", err)
	}
	for range 20 {
		if s.Commit(background, session(0), put("f0", strings.Repeat("y", 3_000))) == nil {
			t.Fatal("it has room")
		}
	}
	end := func(s *Store, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if err := s.End(background, session(i)); err != nil {
				t.Fatalf("ending session %d of %d: %v", i, sessions, err)
			}
		}
	}
	end(s, 1, sessions/3)
	_ = s.db.Close() // as a crash does
	s = open(t, path, opt)
	if list, err := s.Load(background, session(sessions/3-1)); err != nil || len(list) != 0 {
		t.Errorf("an ended session has %d records, %v", len(list), err)
	}
	end(s, sessions/3, 2*sessions/3)
	_ = s.Close() // it says that there was no room
	s = open(t, path, opt)
	end(s, 2*sessions/3, sessions)
	if list, err := s.Load(background, session(0)); err != nil || len(list) != 10 {
		t.Errorf("the session that was not ended has %d records, %v", len(list), err)
	}
	for n := range 100 {
		if err := s.Commit(background, store.Name("later"), put(fmt.Sprint("f", n), strings.Repeat("x", 3_000))); err != nil {
			t.Fatalf("with room again: record %d: %v", n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
