//go:build unix

package main

import (
	"io"
	"net"
	"sync"
)

// link is a connection between two machines that can be cut: a proxy of TCP. While it is
// cut nothing passes, or, when it was torn, every connection breaks and none begins.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	whole chan struct{} // closed while everything passes
	torn  bool
	open  map[net.Conn]struct{}
}

func newLink(to string) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{listener: l, to: to, whole: make(chan struct{}), open: map[net.Conn]struct{}{}}
	close(k.whole)
	go k.serve()
	return k, nil
}

func (k *link) address() string { return k.listener.Addr().String() }

// cut has nothing pass until heal. torn: connections break, otherwise they hang.
func (k *link) cut(torn bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.whole, k.torn = make(chan struct{}), torn
	if torn {
		for conn := range k.open {
			_ = conn.Close()
		}
	}
}

func (k *link) heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.whole)
	k.torn = false
}

func (k *link) serve() {
	for {
		from, err := k.listener.Accept()
		if err != nil {
			return
		}
		go k.carry(from)
	}
}

func (k *link) carry(from net.Conn) {
	defer from.Close()
	if !k.enter(from) {
		return
	}
	defer k.leave(from)
	k.await()
	to, err := net.Dial("tcp", k.to)
	if err != nil || !k.enter(to) {
		return
	}
	defer k.leave(to)
	defer to.Close()
	go func() {
		k.pump(from, to)
		_ = from.Close()
		_ = to.Close()
	}()
	k.pump(to, from)
}

// enter counts a connection in, unless the link is torn.
func (k *link) enter(conn net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.torn {
		_ = conn.Close()
		return false
	}
	k.open[conn] = struct{}{}
	return true
}

func (k *link) leave(conn net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, conn)
}

// await returns when the link is whole.
func (k *link) await() {
	k.mu.Lock()
	whole := k.whole
	k.mu.Unlock()
	<-whole
}

func (k *link) pump(from io.Reader, to io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			k.await()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
