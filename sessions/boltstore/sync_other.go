//go:build !linux

package boltstore

import "os"

// syncData has what was written to a file on the disk when it returns.
func syncData(file *os.File) error { return file.Sync() }
