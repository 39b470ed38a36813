//go:build !purego && !race && !386

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// direct makes the system calls. Each direction has one user at a time.
type direct struct {
	nc  net.Conn
	raw syscall.RawConn

	// Of who reads.
	receive  func(fd uintptr) bool // received, made once: a call must not cost an allocation
	into     []byte
	got      int
	inFailed syscall.Errno

	// Of who writes.
	transmit  func(fd uintptr) bool // transmitted
	from      [mostPieces]syscall.Iovec
	pieces    uintptr // in from
	left      int     // bytes in from
	outFailed syscall.Errno
}

func newDirect(nc net.Conn, raw syscall.RawConn) *direct {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn, asItIs:
	default: // it may offer the descriptor, and yet read and write in a way of its own
		return nil
	}
	d := &direct{nc: nc, raw: raw}
	d.receive, d.transmit = d.received, d.transmitted
	return d
}

// read is net.Conn's.
func (d *direct) read(p []byte) (int, error) {
	d.into, d.got, d.inFailed = p, 0, 0
	err := d.raw.Read(d.receive)
	d.into = nil
	switch {
	case err != nil:
		return 0, named(err, "read")
	case d.inFailed != 0:
		return 0, d.failure("read", d.inFailed)
	case d.got == 0:
		return 0, io.EOF
	}
	return d.got, nil
}

// received reads once. It reports whether that was it; else there is nothing to read yet.
func (d *direct) received(fd uintptr) bool {
	for {
		n, errno := receive(fd, d.into, 0)
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			d.got = int(n)
		default:
			d.inFailed = errno
		}
		return true
	}
}

// write writes pieces of size bytes in all.
func (d *direct) write(pieces [mostPieces][]byte, size int) (int, error) {
	d.pieces = 0
	for _, p := range pieces {
		if len(p) > 0 {
			d.from[d.pieces].Base = &p[0]
			d.from[d.pieces].SetLen(len(p))
			d.pieces++
		}
	}
	d.left, d.outFailed = size, 0
	err := d.raw.Write(d.transmit)
	d.from = [mostPieces]syscall.Iovec{}
	switch {
	case err != nil:
		return size - d.left, named(err, "write")
	case d.outFailed != 0:
		return size - d.left, d.failure("write", d.outFailed)
	}
	return size, nil
}

// transmitted writes until nothing is left. It reports whether that was it; else the socket takes no
// more for now.
func (d *direct) transmitted(fd uintptr) bool {
	for d.left > 0 {
		n, errno := d.send(fd)
		switch errno {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		case 0:
			d.taken(int(n))
		default:
			d.outFailed = errno
			return true
		}
	}
	return true
}

// send makes the call that is the shortest for what is left.
func (d *direct) send(fd uintptr) (uintptr, syscall.Errno) {
	if d.pieces == 1 {
		return transmit(fd, d.from[0].Base, uintptr(d.from[0].Len))
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&d.from[0])), d.pieces)
	return n, errno
}

// taken notes that the socket has taken the first n bytes.
func (d *direct) taken(n int) {
	d.left -= n
	for i := range d.from {
		piece := &d.from[i]
		some := min(n, int(piece.Len))
		if n -= some; some == int(piece.Len) {
			*piece = syscall.Iovec{}
			continue
		}
		piece.Base = (*byte)(unsafe.Add(unsafe.Pointer(piece.Base), some))
		piece.SetLen(int(piece.Len) - some)
		return
	}
}

// failure is the error of a system call, as net words it.
func (d *direct) failure(op string, errno syscall.Errno) error {
	return &net.OpError{
		Op: op, Net: d.nc.LocalAddr().Network(), Source: d.nc.LocalAddr(), Addr: d.nc.RemoteAddr(),
		Err: os.NewSyscallError(op, errno),
	}
}

// named has an error of net's say which operation it is of.
func named(err error, op string) error {
	var of *net.OpError
	if errors.As(err, &of) {
		of.Op = op
	}
	return err
}
