//go:build linux

package park

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	return socket(t, conn), there
}

// socket takes a connection from the runtime.
func socket(t testing.TB, conn net.Conn) Socket {
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

func TestOwnerLearnsOfTheHangUp(t *testing.T) {
	for name, hangUp := range map[string]func(net.Conn){
		"close":      func(c net.Conn) { c.Close() },
		"half close": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"reset":      func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoller(t)
			here, there := pair(t)
			o := newOwner()
			w := watch(t, p, here, HangUp, o)
			hangUp(there)
			<-o.ready
			if p.Forget(w) || p.Len() != 0 {
				t.Error("the watch goes on after its event")
			}
		})
	}
}

func TestUnixSocketsAreWatchedToo(t *testing.T) {
	p := newPoller(t)
	conn, there := pairOver(t, "unix", filepath.Join(t.TempDir(), "s"))
	o := newOwner()
	here := socket(t, conn)
	watch(t, p, here, HangUp, o)
	there.Close()
	<-o.ready
	here.Close()
}

func TestDataIsNoHangUp(t *testing.T) {
	p := newPoller(t)
	here, there := pair(t)
	o := newOwner()
	watch(t, p, here, HangUp, o)
	if _, err := there.Write([]byte("early")); err != nil {
		t.Fatal(err)
	}
	settle(t, p)
	if o.calls.Load() != 0 {
		t.Error("woken by data")
	}
	there.Close() // with the data still unread
	<-o.ready
}

func TestEventBeforeTheWatchCounts(t *testing.T) {
	p := newPoller(t)
	here, there := pair(t)
	first, second := newOwner(), newOwner()
	watch(t, p, here, HangUp, first)
	there.Close()
	<-first.ready
	watch(t, p, here, HangUp, second)
	<-second.ready
	here.Close()
}

func TestEventIsToldOnce(t *testing.T) {
	p := newPoller(t)
	here, there := pair(t)
	o := newOwner()
	watch(t, p, here, Data, o)
	for range 10 {
		if _, err := there.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	<-o.ready
	settle(t, p)
	if n := o.calls.Load(); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestForgottenWatchIsSilentAndConnectionUsable(t *testing.T) {
	p := newPoller(t)
	here, there := pair(t)
	o := newOwner()
	w := watch(t, p, here, Data, o)
	if !p.Forget(w) {
		t.Fatal("no such watch")
	}
	if p.Forget(w) || p.Forget(0) || p.Forget(1<<40) {
		t.Error("forgot twice, or what never was")
	}
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := read(here); n != 1 || err != nil {
		t.Fatal("read after the watch", n, err)
	}
	watch(t, p, here, Data, o) // again
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-o.ready
}

// The kernel gives the number of a closed descriptor to the next connection:
// neither may the new one hear of the old one's end, nor the other way round.
func TestReusedDescriptorsAndEntriesAreToldApart(t *testing.T) {
	p := newPoller(t)
	for range 200 {
		here, there := pair(t)
		gone := newOwner()
		w := watch(t, p, here, HangUp, gone)
		p.Forget(w)
		here.Close()
		next, peer := pair(t)
		o := newOwner()
		watch(t, p, next, HangUp, o)
		there.Close()
		peer.Close()
		<-o.ready
		if gone.calls.Load() != 0 {
			t.Fatal("a forgotten owner was called")
		}
	}
}

func TestSocketIsWatchedForOneThingAfterTheOther(t *testing.T) {
	p := newPoller(t)
	here, there := pair(t)
	for range 3 {
		o := newOwner()
		watch(t, p, here, Data, o)
		if _, err := there.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-o.ready
		watch(t, p, here, Room, o)
		<-o.ready
		_, _ = read(here)
	}
	here.Close()
}

func TestWatchOfAClosedSocketFails(t *testing.T) {
	p := newPoller(t)
	here, _ := pair(t)
	here.Close()
	if _, err := p.Watch(here, HangUp, newOwner()); err == nil {
		t.Error("watches a closed socket")
	}
	if p.Len() != 0 {
		t.Errorf("%d entries left", p.Len())
	}
}

func TestWakeAndForgetRace(t *testing.T) {
	p := newPoller(t)
	const n = 300
	var woken, forgotten atomic.Int32
	var wg sync.WaitGroup
	for range n {
		here, there := pair(t)
		o := newOwner()
		w := watch(t, p, here, HangUp, o)
		wg.Go(func() { there.Close() })
		wg.Go(func() {
			if p.Forget(w) {
				forgotten.Add(1)
				here.Close()
				return
			}
			<-o.ready
			woken.Add(1)
		})
	}
	wg.Wait()
	if woken.Load()+forgotten.Load() != n || p.Len() != 0 {
		t.Errorf("%d woken, %d forgotten of %d; %d left", woken.Load(), forgotten.Load(), n, p.Len())
	}
}

func TestThousandsNeedOneGoroutine(t *testing.T) {
	p := newPoller(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := runtime.NumGoroutine()
	o := &owner{ready: make(chan struct{}, 2000)}
	var peers []net.Conn
	for range 2000 {
		there, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		here, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s := socket(t, here)
		t.Cleanup(s.Close)
		watch(t, p, s, HangUp, o)
		peers = append(peers, there)
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		t.Errorf("%d goroutines more", n-before)
	}
	if len(p.Owners()) != 2000 {
		t.Errorf("%d owners", len(p.Owners()))
	}
	for _, c := range peers {
		c.Close()
	}
	for range 2000 {
		<-o.ready
	}
	if p.Len() != 0 || len(p.watches.entries) != 0 {
		t.Errorf("%d watches and %d entries left", p.Len(), len(p.watches.entries))
	}
}

func TestClosedPollerTakesNobody(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	here, there := pair(t)
	o := newOwner()
	w := watch(t, p, here, HangUp, o)
	p.Close()
	there.Close()
	if _, err := p.Watch(here, HangUp, o); !errors.Is(err, ErrClosed) {
		t.Errorf("err = %v", err)
	}
	if len(p.Owners()) != 1 || !p.Forget(w) {
		t.Error("who was watched must be told apart from who was woken")
	}
	if o.calls.Load() != 0 {
		t.Error("called after Close")
	}
}

func TestOnlyPlainSocketsAreParkable(t *testing.T) {
	here, _ := pairOver(t, "tcp", "127.0.0.1:0")
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if !Parkable(here) || Parkable(a) || Parkable(struct{ net.Conn }{here}) {
		t.Error("wrong judgement")
	}
	if _, err := Dup(a); !errors.Is(err, ErrUnsupported) {
		t.Errorf("err = %v", err)
	}
	here.Close()
	if _, err := Dup(here); err == nil {
		t.Error("took the descriptor of a closed connection")
	}
}

func TestConnectionSurvivesBeingParked(t *testing.T) {
	conn, there := pairOver(t, "tcp", "127.0.0.1:0")
	local, remote := conn.LocalAddr().String(), conn.RemoteAddr().String()
	p := newPoller(t)
	for range 3 {
		s := socket(t, conn)
		o := newOwner()
		watch(t, p, s, Data, o)
		if _, err := there.Write([]byte("ahead")); err != nil {
			t.Fatal(err)
		}
		<-o.ready
		var err error
		if conn, err = s.Conn(); err != nil {
			t.Fatal(err)
		}
		if conn.LocalAddr().String() != local || conn.RemoteAddr().String() != remote {
			t.Error("other addresses", conn.LocalAddr(), conn.RemoteAddr())
		}
		b := make([]byte, 8)
		if n, err := conn.Read(b); n != 5 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(there, b); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now())
		if _, err := conn.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
	}
	conn.Close()
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a descriptor is left open: %v", err)
	}
}

func TestSocketStaysWhenItCannotBecomeAConnection(t *testing.T) {
	here, there := pair(t)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	tight := old
	tight.Cur = uint64(here) + 1 // not one more
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &tight); err != nil {
		t.Fatal(err)
	}
	var fill []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		fill = append(fill, fd)
	}
	_, err := here.Conn()
	if restored := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); restored != nil {
		t.Fatal(restored)
	}
	for _, fd := range fill {
		_ = unix.Close(fd)
	}
	if !Exhausted(err) || Exhausted(io.EOF) {
		t.Errorf("err = %v", err)
	}
	conn, err := here.Conn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestTryWriteNeverWaits(t *testing.T) {
	here, there := pair(t)
	b := make([]byte, 64<<10)
	total := 0
	for {
		n, err := here.TryWrite(b)
		if err != nil {
			t.Fatal(err)
		}
		total += n
		if n < len(b) {
			break
		}
	}
	if n, err := here.TryWrite(b); n != 0 || err != nil {
		t.Errorf("full connection: %d, %v", n, err)
	}
	p := newPoller(t)
	o := newOwner()
	watch(t, p, here, Room, o)
	if _, err := io.CopyN(io.Discard, there, int64(total)); err != nil {
		t.Fatal(err)
	}
	<-o.ready
	if n, err := here.TryWrite(b); n == 0 || err != nil {
		t.Errorf("there is room again: %d, %v", n, err)
	}
	here.Close()
}

func TestTryWriteTellsOfABrokenConnection(t *testing.T) {
	here, there := pair(t)
	_ = there.(*net.TCPConn).SetLinger(0)
	p := newPoller(t)
	o := newOwner()
	watch(t, p, here, HangUp, o)
	there.Close()
	<-o.ready
	if _, err := here.TryWrite([]byte("x")); err == nil {
		t.Error("no error")
	}
	here.Close()
}

func TestWaitingTellsDataFromTheEnd(t *testing.T) {
	here, there := pair(t)
	if ok, err := here.Waiting(); ok || err != nil {
		t.Errorf("nothing there: %t, %v", ok, err)
	}
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	there.Close()
	p := newPoller(t)
	o := newOwner()
	watch(t, p, here, HangUp, o)
	<-o.ready
	if ok, err := here.Waiting(); !ok || err != nil {
		t.Errorf("data before the end: %t, %v", ok, err)
	}
	_, _ = read(here)
	if ok, err := here.Waiting(); ok || !errors.Is(err, io.EOF) {
		t.Errorf("the end: %t, %v", ok, err)
	}
	here.Close()
}

func BenchmarkWatchAndForget(b *testing.B) {
	p := newPoller(b)
	here, _ := pair(b)
	o := newOwner()
	b.ReportAllocs()
	for b.Loop() {
		p.Forget(watch(b, p, here, HangUp, o))
	}
}

func BenchmarkWake(b *testing.B) {
	p := newPoller(b)
	here, there := pair(b)
	o := newOwner()
	buf := make([]byte, 1)
	b.ReportAllocs()
	for b.Loop() {
		watch(b, p, here, Data, o)
		if _, err := there.Write(buf); err != nil {
			b.Fatal(err)
		}
		<-o.ready
		if _, err := read(here); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTryWrite(b *testing.B) {
	here, there := pair(b)
	go func() { _, _ = io.Copy(io.Discard, there) }()
	buf := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := here.TryWrite(buf); err != nil {
			b.Fatal(err)
		}
	}
	here.Close()
}

// BenchmarkParkAndBack is what it costs a connection to be parked and to come
// back, without what net/http does about it.
func BenchmarkParkAndBack(b *testing.B) {
	p := newPoller(b)
	conn, _ := pairOver(b, "tcp", "127.0.0.1:0")
	o := newOwner()
	b.ReportAllocs()
	for b.Loop() {
		s := socket(b, conn)
		p.Forget(watch(b, p, s, Data, o))
		var err error
		if conn, err = s.Conn(); err != nil {
			b.Fatal(err)
		}
	}
	conn.Close()
}
