package edge

import (
	"container/list"
	"net"
	"sync"
)

// answered is who is being told that there is no room, in the order in which they came. When all
// places for that are taken, who came first makes room: a health probe asks as soon as it is
// connected and has its answer at once, while those who say nothing would keep it out
// for as long as they may take.
type answered struct {
	mu     sync.Mutex
	queue  list.List // of *leaving
	beyond int       // how many of them have numbers that are kept for others
}

// leaving is the connection of one of them.
type leaving struct {
	net.Conn
	of     *answered
	place  *list.Element // nil: it has left
	beyond bool
}

// let takes one more in, nil: there is no place. Nor is there a new one while a number
// beyond the bound is taken, lest numbers that become free below it add up.
func (a *answered) let(conn net.Conn, beyond bool) net.Conn {
	next, first, ok := a.place(conn, beyond)
	if first != nil {
		_ = first.Conn.Close()
	}
	if !ok {
		return nil
	}
	return next
}

func (a *answered) place(conn net.Conn, beyond bool) (next, first *leaving, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if beyond || a.beyond > 0 {
		front := a.queue.Front()
		if front == nil {
			return nil, nil, false
		}
		first = front.Value.(*leaving)
		a.dropLocked(first)
	}
	next = &leaving{Conn: conn, of: a, beyond: beyond}
	next.place = a.queue.PushBack(next)
	if beyond {
		a.beyond++
	}
	return next, first, true
}

func (a *answered) dropLocked(l *leaving) {
	if l.place == nil {
		return
	}
	a.queue.Remove(l.place)
	l.place = nil
	if l.beyond {
		a.beyond--
	}
}

// Close implements net.Conn.
func (l *leaving) Close() error {
	l.of.mu.Lock()
	l.of.dropLocked(l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// CloseWrite is for net/http, by which a client has read its answer when the connection ends.
func (l *leaving) CloseWrite() error {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
