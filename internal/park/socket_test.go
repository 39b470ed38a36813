//go:build linux

package park

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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
		s := taken(t, conn)
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

// A server asks its connections whose they are.
func TestASocketThatItsPeerHasResetIsNoConnection(t *testing.T) {
	here, there := pair(t)
	p := newPoller(t)
	o := newOwner()
	watch(t, p, here, HangUp, o)
	_ = there.(*net.TCPConn).SetLinger(0)
	there.Close()
	<-o.ready
	if conn, err := here.Conn(); err == nil {
		t.Errorf("a connection from %v", conn.RemoteAddr())
	}
	here.Close()
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
