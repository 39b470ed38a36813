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
