//go:build linux

package park

import (
	"io"
	"testing"
)

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
		s := taken(b, conn)
		p.Forget(watch(b, p, s, Data, o))
		var err error
		if conn, err = s.Conn(); err != nil {
			b.Fatal(err)
		}
	}
	conn.Close()
}
