//go:build unix

package usersocket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASocketIsFoundUntilItsProgramEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	l, err := Listen(t.Context(), []string{"/dev/null/nowhere", dir})
	if err != nil {
		t.Fatal(err)
	}
	found := Find(t.Context(), dir)
	if len(found) != 1 || found[0].PID != os.Getpid() {
		t.Fatalf("%+v", found)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, found[0].Path: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	_ = l.Close()
	if found := Find(t.Context(), dir); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestWhatAKilledProgramLeftIsRemoved, and nothing else is.
func TestWhatAKilledProgramLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	dead, other := filepath.Join(dir, "stdio-1.sock"), filepath.Join(dir, "stdio-2.sock")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := Find(t.Context(), dir); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the dead socket is there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file that is no socket: %v", err)
	}
}

func TestADirectoryOfOthersIsNotUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), []string{dir}); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), []string{link}); err == nil {
		t.Error("a link was followed")
	}
}
