//go:build !linux

package gctune

func advise(uint64) {}
