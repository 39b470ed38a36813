package boltstore

import (
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// giveBack lets go of the pages of the file that were looked at, when they are many. They
// stay in the system's cache as long as that has room, from which they come back at the
// next look. They would be there anyway; but nobody can tell them from memory that the
// process needs, and a file of millions of flows is larger than that.
func (s *Store) giveBack() {
	if resident() < s.mapped {
		return
	}
	_ = s.db.View(func(tx *bolt.Tx) error { // under which the file is not mapped anew
		if size := tx.Size(); size > 0 {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.db.Info().Data, uintptr(size), unix.MADV_DONTNEED)
		}
		return nil
	})
}

// Who reads values that are large lets go of the file's pages after so many bytes: until the next second they could be all of
// the file.
const (
	largeValue = 64 << 10
	mostLooked = 16 << 20
)

// haveRead notes that a value of the file was read, of so many bytes. Nobody may have the file in view.
func (s *Store) haveRead(bytes int) {
	if bytes >= largeValue && s.lately.Add(int64(bytes)) >= mostLooked {
		s.lately.Store(0)
		s.giveBack()
	}
}

// resident is how many bytes of files are mapped and in memory, 0 where that is unknown.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, all, shared int64
	_, _ = fmt.Sscan(string(text), &size, &all, &shared)
	return shared * int64(os.Getpagesize())
}
