package boltstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// Disk returns how many bytes the disk has for the file: those that the file takes, and those that are
// free. 0: nobody knows.
func (s *Store) Disk() int64 {
	var disk unix.Statfs_t
	info, err := os.Stat(s.db.Path())
	if err != nil || unix.Statfs(s.db.Path(), &disk) != nil {
		return 0
	}
	return info.Size() + int64(disk.Bavail)*int64(disk.Bsize) //nolint:gosec,unconvert // no disk is so large; the types differ by architecture
}
