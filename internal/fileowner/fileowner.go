// Package fileowner looks at whose a file is and who else may use it. What others can put
// in the place of a secret is none.
package fileowner

import (
	"fmt"
	"io/fs"
	"os"
)

// A file as the system has it. Where there are no such owners nothing is known of it.
type file struct {
	known   bool
	owner   int
	foreign bool // neither the own user's nor root's
}

// Writable returns an error for a file that everybody may write to. Devices and pipes are
// nobody's to check.
func Writable(path string, info fs.FileInfo) error {
	if of(info).known && info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s can be written to by every user of this machine, so that nobody knows whose it is; make sure that its content is yours, then: chmod 600 %s", path, path)
	}
	return nil
}

// Planted is Writable for a file that the bridge makes itself, which nobody but its own user
// and root can have made.
func Planted(path string, info fs.FileInfo) error {
	if f := of(info); f.foreign {
		return fmt.Errorf("%s belongs to another user (%d), who may have put it there; remove it, or, if it is yours: chown %d %s", path, f.owner, os.Geteuid(), path)
	}
	return Writable(path, info)
}

// Exposed says who else may use a file, and what to do; "" where that is nobody but root.
func Exposed(path string, info fs.FileInfo) string {
	f := of(info)
	if !f.known || !info.Mode().IsRegular() {
		return ""
	}
	switch perm := info.Mode().Perm(); {
	case f.foreign:
		return fmt.Sprintf("%s belongs to another user (%d), who can read and change it; if that is not wanted: chown %d %s", path, f.owner, os.Geteuid(), path)
	case perm&0o020 != 0:
		return fmt.Sprintf("others may change %s (mode %04o); if that is not wanted: chmod 600 %s", path, perm, path)
	case perm&0o044 != 0:
		return fmt.Sprintf("others may read %s (mode %04o); if that is not wanted: chmod 600 %s", path, perm, path)
	}
	return ""
}
