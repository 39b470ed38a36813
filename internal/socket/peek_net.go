//go:build unix && (!linux || purego || race)

package socket

import "syscall"

// recvPeek copies what a socket has received.
func recvPeek(fd uintptr, p []byte) (int, error) {
	n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK)
	return n, err
}
