//go:build linux

package park

import (
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

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
	here := taken(t, conn)
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
		s := taken(t, here)
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
