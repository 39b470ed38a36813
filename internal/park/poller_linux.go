package park

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const supported = true

// batch is how many events are fetched at once.
const batch = 128

// Poller waits for all its connections at once, by epoll. The descriptors stay
// with the runtime's own poller as well, so a connection can be written to, and
// read again after its watch, as ever.
//
// The epoll descriptor is itself handed to the runtime's poller, which knows how
// to wait for it without a thread and how to end that wait.
type Poller struct {
	watches table
	epoll   *os.File
	control syscall.RawConn
	done    chan struct{}
}

// New returns a poller and starts its goroutine. Close ends it.
func New() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("park: %w", err)
	}
	_ = unix.SetNonblock(fd, true) // tells os.NewFile that the runtime may poll it
	p := &Poller{epoll: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{})}
	if p.control, err = p.epoll.SyscallConn(); err != nil {
		_ = p.epoll.Close()
		return nil, fmt.Errorf("park: %w", err)
	}
	go p.run()
	return p, nil
}

// Watch waits for an event on a connection that nobody reads from. An event that
// happened before counts as well, so Ready may be called before Watch returns.
// The owner must Forget the watch before it closes the connection itself.
func (p *Poller) Watch(conn net.Conn, ev Event, owner Owner) (Watch, error) {
	w, err := p.watches.add(conn, owner)
	if err != nil {
		return 0, err
	}
	// Data that arrives during a watch for a hang-up is no event: it stays
	// in the socket's buffer. A reset is always one.
	interest := unix.EpollEvent{Events: unix.EPOLLRDHUP, Fd: int32(uint32(w)), Pad: int32(uint32(w >> 32))}
	if ev == Data {
		interest.Events |= unix.EPOLLIN
	}
	err = p.ctl(conn, unix.EPOLL_CTL_ADD, &interest)
	if err != nil {
		p.watches.take(w)
		return 0, err
	}
	return w, nil
}

// Forget ends a watch. It reports false when the watch was over: the owner has
// been called or is about to be, and until then it must not watch the connection
// again.
func (p *Poller) Forget(w Watch) bool {
	conn, owner := p.watches.take(w)
	if owner == nil {
		return false
	}
	_ = p.ctl(conn, unix.EPOLL_CTL_DEL, nil)
	return true
}

// ctl changes what the kernel watches. The descriptor cannot be closed, and so
// not be somebody else's, meanwhile.
func (p *Poller) ctl(conn net.Conn, op int, interest *unix.EpollEvent) error {
	c, err := raw(conn)
	if err != nil {
		return err
	}
	outer := p.control.Control(func(epoll uintptr) {
		inner := c.Control(func(fd uintptr) {
			err = unix.EpollCtl(int(epoll), op, int(fd), interest)
		})
		err = errors.Join(err, inner)
	})
	return errors.Join(err, outer)
}

// Owners returns the owners of all connections that are watched right now.
func (p *Poller) Owners() []Owner { return p.watches.owners() }

// Len returns the number of connections that are watched.
func (p *Poller) Len() int { return p.watches.len() }

// Close ends all watches. Afterwards no owner is called any more; it must not be
// called by an owner from Ready.
func (p *Poller) Close() {
	p.watches.close()
	_ = p.epoll.Close()
	<-p.done
}

func (p *Poller) run() {
	defer close(p.done)
	var events [batch]unix.EpollEvent
	for {
		n, err := p.wait(events[:])
		if err != nil {
			return // closed
		}
		for i := range events[:n] {
			p.wake(Watch(uint32(events[i].Pad))<<32 | Watch(uint32(events[i].Fd)))
		}
	}
}

func (p *Poller) wait(events []unix.EpollEvent) (n int, err error) {
	outer := p.control.Read(func(epoll uintptr) bool {
		n, err = unix.EpollWait(int(epoll), events, 0)
		if errors.Is(err, unix.EINTR) {
			n, err = 0, nil
		}
		return n > 0 || err != nil
	})
	return n, errors.Join(err, outer)
}

// wake ends a watch because of its event.
func (p *Poller) wake(w Watch) {
	conn, owner := p.watches.take(w)
	if owner == nil {
		return // forgotten while the event was on its way
	}
	_ = p.ctl(conn, unix.EPOLL_CTL_DEL, nil)
	owner.Ready()
}

// TryWrite writes as much as the connection takes at once. It is no error that
// this is less than everything, or nothing.
func TryWrite(conn net.Conn, b []byte) (n int, err error) {
	c, err := raw(conn)
	if err != nil {
		return 0, err
	}
	outer := c.Write(func(fd uintptr) bool {
		for n < len(b) && err == nil {
			var some int
			if some, err = unix.Write(int(fd), b[n:]); some > 0 {
				n += some
			}
			if errors.Is(err, unix.EINTR) {
				err = nil
			}
		}
		return true
	})
	if errors.Is(err, unix.EAGAIN) {
		err = nil
	}
	return n, errors.Join(err, outer)
}

// Waiting reports whether there is something to read. It is false, without an
// error, when there is not; an error tells that there never will be.
func Waiting(conn net.Conn) (bool, error) {
	c, err := raw(conn)
	if err != nil {
		return false, err
	}
	n := 0
	outer := c.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return true
	})
	switch {
	case outer != nil:
		return false, outer
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, err
	case n <= 0:
		return false, net.ErrClosed
	}
	return true, nil
}
