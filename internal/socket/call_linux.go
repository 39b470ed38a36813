//go:build !purego && !race && !386

// Linux on 386 has one system call for all that sockets do: there it is package syscall's.

package socket

import (
	"syscall"
	"unsafe"
)

// Look copies what the socket with this descriptor has received, and leaves it where it is. It never
// waits: the error is EAGAIN where nothing has come. p has at least one byte.
func Look(fd uintptr, p []byte) (int, error) {
	n, errno := receive(fd, p, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return moved(n, errno)
}

// TryWrite writes what the socket with this descriptor, which does not block, takes at once. p has at least
// one byte.
func TryWrite(fd uintptr, p []byte) (int, error) {
	n, errno := transmit(fd, &p[0], uintptr(min(len(p), most)))
	return moved(n, errno)
}

// What sockets alone have gets by what files have on its way: a write and its read together
// cost a seventh less as transmit and receive (ADR 22).

func receive(fd uintptr, p []byte, flags uintptr) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
	return n, errno
}

func transmit(fd uintptr, p *byte, n uintptr) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(p)), n, syscall.MSG_NOSIGNAL, 0, 0)
	return n, errno
}

func moved(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
