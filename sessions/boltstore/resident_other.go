//go:build !linux

package boltstore

// giveBack does something on Linux only.
func (s *Store) giveBack() {}

func (s *Store) haveRead(int) {}
