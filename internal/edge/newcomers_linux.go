package edge

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// inLine returns how many connections wait to be accepted; 0 where that is not known.
func inLine(l net.Listener) (n int) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return 0
	}
	_ = withDescriptor(tcp, func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Unacked) // which a socket that listens uses for that
		}
	})
	return n
}

// connecting matches what begins a connection, by the flags in byte 13 of a TCP header: SYN without ACK.
var connecting = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},          // drop it
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff}, // take all of it
}

// overhear has the kernel take no notice of those who connect from now on: they try again within about a second, and
// are refused then. Those who are connecting already get in line. It reports whether the kernel can do that.
func overhear(l net.Listener) bool {
	tcp, ok := l.(*net.TCPListener)
	err := errors.ErrUnsupported
	return ok && withDescriptor(tcp, func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(connecting)), Filter: &connecting[0]})
	}) == nil && err == nil
}

func withDescriptor(l *net.TCPListener, use func(fd uintptr)) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(use)
}
