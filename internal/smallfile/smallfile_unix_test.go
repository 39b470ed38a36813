//go:build unix

package smallfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFileWithoutEndIsRefused(t *testing.T) {
	_, err := Read("/dev/zero")
	if _, long := errors.AsType[TooLong](err); !long {
		t.Errorf("it is read, with %v", err)
	}
}

func TestAFileOfTheBoundIsReadWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := UpTo(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if _, err := UpTo(file, 4); err == nil {
		t.Error("a longer one is read")
	}
}

// Who reads a file that hangs goes on when its time is over; few threads are left behind, and none once it hangs no more.
func TestAFileThatHangsIsLeftInTime(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range MaxHanging {
		if _, err := SecretWithin(over, pipe); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	}
	if _, err := SecretWithin(t.Context(), pipe); err == nil {
		t.Error("one more begins")
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	// Whoever was not there yet when the pipe was closed opens it now.
	free, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = free.WriteString("x")
	for busy := true; busy; {
		hanging.mu.Lock()
		busy = hanging.paths[pipe] > 0
		hanging.mu.Unlock()
		if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
		if free != nil {
			free.Close()
			free = nil
		}
	}
}
