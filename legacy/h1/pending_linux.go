package h1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pending reports whether something has come over a connection that nobody has read yet.
func pending(nc net.Conn) (some bool) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		some = err == nil && n > 0
	})
	return some
}
