//go:build linux

package park

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
func pair(t testing.TB) (here, there net.Conn) { return pairOver(t, "tcp", "127.0.0.1:0") }

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

func watch(t testing.TB, p *Poller, conn net.Conn, ev Event, o Owner) Watch {
	t.Helper()
	w, err := p.Watch(conn, ev, o)
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
	here, there := pairOver(t, "unix", filepath.Join(t.TempDir(), "s"))
	o := newOwner()
	watch(t, p, here, HangUp, o)
	there.Close()
	<-o.ready
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
	there.Close()
	if n, err := here.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	o := newOwner()
	watch(t, p, here, HangUp, o)
	<-o.ready
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
	if n, err := here.Read(make([]byte, 8)); n != 1 || err != nil {
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

func TestClosingWithoutForgettingHarmsNobody(t *testing.T) {
	p := newPoller(t)
	here, _ := pair(t)
	stale := newOwner()
	w := watch(t, p, here, HangUp, stale)
	here.Close()
	here.Close()
	settle(t, p)
	if !p.Forget(w) {
		t.Error("the entry is lost")
	}
	if _, err := p.Watch(here, HangUp, stale); err == nil {
		t.Error("watches a closed connection")
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
		t.Cleanup(func() { here.Close() })
		watch(t, p, here, HangUp, o)
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

func TestOnlyPlainSocketsArePollable(t *testing.T) {
	here, _ := pair(t)
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if !Pollable(here) || Pollable(a) || Pollable(struct{ net.Conn }{here}) {
		t.Error("wrong judgement")
	}
	p := newPoller(t)
	if _, err := p.Watch(a, HangUp, newOwner()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("err = %v", err)
	}
	if p.Len() != 0 {
		t.Error("an entry is left")
	}
}

func TestTryWriteNeverWaits(t *testing.T) {
	here, there := pair(t)
	b := make([]byte, 64<<10)
	total := 0
	for {
		n, err := TryWrite(here, b)
		if err != nil {
			t.Fatal(err)
		}
		total += n
		if n < len(b) {
			break
		}
	}
	if n, err := TryWrite(here, b); n != 0 || err != nil {
		t.Errorf("full connection: %d, %v", n, err)
	}
	if _, err := io.CopyN(io.Discard, there, int64(total)); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Write([]byte("the usual way still works")); err != nil {
		t.Error(err)
	}
}

func TestTryWriteTellsOfABrokenConnection(t *testing.T) {
	here, there := pair(t)
	_ = there.(*net.TCPConn).SetLinger(0)
	there.Close()
	_, _ = here.Read(make([]byte, 1)) // until the reset has arrived
	if _, err := TryWrite(here, []byte("x")); err == nil {
		t.Error("no error")
	}
	here.Close()
	if _, err := TryWrite(here, []byte("x")); err == nil {
		t.Error("no error after Close")
	}
}

func TestWaitingTellsDataFromTheEnd(t *testing.T) {
	here, there := pair(t)
	if ok, err := Waiting(here); ok || err != nil {
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
	if ok, err := Waiting(here); !ok || err != nil {
		t.Errorf("data before the end: %t, %v", ok, err)
	}
	_, _ = here.Read(make([]byte, 8))
	if ok, err := Waiting(here); ok || err == nil {
		t.Errorf("the end: %t, %v", ok, err)
	}
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
		if _, err := here.Read(buf); err != nil {
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
		if _, err := TryWrite(here, buf); err != nil {
			b.Fatal(err)
		}
	}
	_ = there.SetDeadline(time.Now())
}
