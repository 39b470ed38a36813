package channel

import (
	"bytes"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Bounds on what waits for whoever is writing. Beyond them, and where there is no memory,
// whoever has something to say waits.
const (
	maxLater      = 64
	maxLaterBytes = 64 << 10
)

// later is what the server announces while somebody else writes to the connection, in its
// order. One client that reads slowly would hold up what others of its server hear, which
// all are told by one goroutine.
type later struct {
	mu   sync.Mutex
	list []said
	size int
	held budget.Hold
}

type said struct {
	key  string
	text []byte
}

// add keeps a copy of a message, in place of one with the same key; false: there is no room.
func (l *later) add(key string, text []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" {
		l.list = slices.DeleteFunc(l.list, func(s said) bool {
			if s.key != key {
				return false
			}
			l.size -= len(s.text)
			return true
		})
	}
	if len(l.list) >= maxLater || l.size+len(text) > maxLaterBytes || l.held.Grow(len(text)) != nil {
		return false
	}
	l.list = append(l.list, said{key, bytes.Clone(text)})
	l.size += len(text)
	return true
}

// take returns what waits, which waits no more.
func (l *later) take() []said {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list, l.size = nil, 0
	l.held.Release()
	return list
}

func (l *later) some() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list) > 0
}
