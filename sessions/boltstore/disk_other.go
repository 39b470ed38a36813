//go:build !linux

package boltstore

// Disk returns how many bytes the disk has for the file; 0: nobody knows.
func (s *Store) Disk() int64 { return 0 }
