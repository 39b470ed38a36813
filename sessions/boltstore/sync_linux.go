package boltstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData has what was written to a file on the disk when it returns.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return err
		}
	}
}
