package h1

import (
	"net"
	"syscall"

	"github.com/mcpbridge/bridge/internal/socket"
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
		n, err := socket.Look(fd, one[:])
		some = err == nil && n > 0
	})
	return some
}
