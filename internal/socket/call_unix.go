//go:build unix && (!linux || purego || race || 386)

package socket

import "syscall"

// Look copies what the socket with this descriptor has received, and leaves it where it is. It never
// waits: the error is EAGAIN where nothing has come. p has at least one byte.
func Look(fd uintptr, p []byte) (int, error) {
	n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n, err
}

// TryWrite writes what the socket with this descriptor, which does not block, takes at once. p has at least
// one byte.
func TryWrite(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
