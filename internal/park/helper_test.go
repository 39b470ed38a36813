//go:build linux

package park

import (
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// owner notes what it is told.
type owner struct {
	ready chan struct{}
	calls atomic.Int32
}

func newOwner() *owner { return &owner{ready: make(chan struct{}, 16)} }

func (o *owner) Ready() {
	o.calls.Add(1)
	o.ready <- struct{}{}
}

func newPoller(t testing.TB) *Poller {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// pair returns both ends of a TCP connection.
func pair(t testing.TB) (here Socket, there net.Conn) {
	t.Helper()
	conn, there := pairOver(t, "tcp", "127.0.0.1:0")
	return taken(t, conn), there
}

// taken takes a connection from the runtime.
func taken(t testing.TB, conn net.Conn) Socket {
	t.Helper()
	s, err := Dup(conn)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	return s
}

// read reads what is there.
func read(s Socket) (int, error) {
	var b [64]byte
	return unix.Read(int(s), b[:])
}

func pairOver(t testing.TB, network, address string) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, err = net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if here, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func watch(t testing.TB, p *Poller, s Socket, ev Event, o Owner) Watch {
	t.Helper()
	w, err := p.Watch(s, ev, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// settle returns after the poller has handled everything that happened before.
func settle(t testing.TB, p *Poller) {
	t.Helper()
	here, there := pair(t)
	o := newOwner()
	watch(t, p, here, Data, o)
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-o.ready
}
