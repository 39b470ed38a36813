package park

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const supported = true

// batch is how many events are fetched at once.
const batch = 128

// Poller waits for all its sockets at once, by epoll. The epoll descriptor is
// handed to the runtime's own poller, which knows how to wait for it without a
// thread and how to end that wait.
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

// Watch waits for an event on a socket; a Poller has at most one watch of each.
// An event that happened before counts as well, so Ready may be called before
// Watch returns. The owner must Forget the watch before it closes the socket.
func (p *Poller) Watch(sock Socket, ev Event, owner Owner) (Watch, error) {
	w, err := p.watches.add(sock, owner)
	if err != nil {
		return 0, err
	}
	// An event disarms its watch. That saves a system call, and nobody needs
	// to touch the descriptor when its owner may be closing it.
	what := unix.EpollEvent{Events: interest(ev) | unix.EPOLLONESHOT, Fd: int32(uint32(w)), Pad: int32(uint32(w >> 32))}
	err = p.ctl(unix.EPOLL_CTL_ADD, sock, &what)
	if errors.Is(err, unix.EEXIST) { // disarmed by an earlier event
		err = p.ctl(unix.EPOLL_CTL_MOD, sock, &what)
	}
	if err != nil {
		p.watches.take(w)
		return 0, err
	}
	return w, nil
}

// interest spells an event for the kernel. Data that arrives during a watch for
// a hang-up is none: it stays in the socket's buffer. A reset always counts.
func interest(ev Event) uint32 {
	switch ev {
	case Data:
		return unix.EPOLLIN | unix.EPOLLRDHUP
	case Room:
		return unix.EPOLLOUT
	}
	return unix.EPOLLRDHUP
}

// Forget ends a watch. It reports false when the watch was over: the owner has
// been called or is about to be.
func (p *Poller) Forget(w Watch) bool {
	sock, owner := p.watches.take(w)
	if owner == nil {
		return false
	}
	p.Drop(sock)
	return true
}

// Drop makes the kernel forget a socket whose watch is over. That is needed only
// before the socket lives on as a connection.
func (p *Poller) Drop(sock Socket) { _ = p.ctl(unix.EPOLL_CTL_DEL, sock, nil) }

func (p *Poller) ctl(op int, sock Socket, what *unix.EpollEvent) error {
	var err error
	closed := p.control.Control(func(epoll uintptr) { err = unix.EpollCtl(int(epoll), op, int(sock), what) })
	if closed != nil {
		return closed
	}
	return err
}

// Owners returns the owners of all sockets that are watched right now.
func (p *Poller) Owners() []Owner { return p.watches.owners() }

// Len returns the number of sockets that are watched.
func (p *Poller) Len() int { return p.watches.len() }

// Close ends the calling of owners; their watches can only be forgotten. It must
// not be called from Ready.
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
			w := Watch(uint32(events[i].Pad))<<32 | Watch(uint32(events[i].Fd))
			if _, owner := p.watches.take(w); owner != nil {
				owner.Ready()
			} // else it was forgotten while the event was on its way
		}
	}
}

func (p *Poller) wait(events []unix.EpollEvent) (n int, err error) {
	closed := p.control.Read(func(epoll uintptr) bool {
		n, err = unix.EpollWait(int(epoll), events, 0)
		if errors.Is(err, unix.EINTR) {
			n, err = 0, nil
		}
		return n > 0 || err != nil
	})
	if closed != nil {
		return 0, closed
	}
	return n, err
}
