package roundtrip

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// A connection that the network has swallowed is found by the kernel, if it is told to look: what
// waits for an answer fails, and what is idle is closed.
func TestASwallowedConnectionIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := Dialer(time.Minute)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, option := range []struct{ level, name, want int }{
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 5},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 2},
	} {
		_ = raw.Control(func(fd uintptr) {
			if got, err := syscall.GetsockoptInt(int(fd), option.level, option.name); got != option.want || err != nil {
				t.Errorf("%d %d: %d %v", option.level, option.name, got, err)
			}
		})
	}
}
