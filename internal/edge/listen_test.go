package edge

import (
	"syscall"
	"testing"
)

func TestASocketThatMayNotBeMadeNamesItsDirectory(t *testing.T) {
	want := "this user may not create unix:/d/s; allow it to write to the directory, or choose another path with --listen unix:OTHER-PATH"
	if err := listenError("--listen", "unix:/d/s", syscall.EACCES); err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
