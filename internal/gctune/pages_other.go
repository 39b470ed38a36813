//go:build !linux

package gctune

// stretch is nothing where the system takes no advice.
type stretch struct{}

func reserve(uint64) *stretch { return nil }

func (*stretch) advise() {}
