package edge

import (
	"net"

	"golang.org/x/sys/unix"
)

// inLine returns how many connections wait to be accepted; 0 where that is not known.
func inLine(l net.Listener) (n int) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Unacked) // which a socket that listens uses for that
		}
	})
	return n
}
