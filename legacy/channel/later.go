package channel

import (
	"bytes"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
)

// Bounds on what waits for whoever is writing. Beyond them, and where there is no memory,
// whoever has something to say waits, unless it is a short word on a list, which all sessions of
// a server are told by one goroutine: there are three lists.
const (
	maxLater      = 64
	maxLaterBytes = 64 << 10
	maxWord       = 2 << 10
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

// size is what it is charged for: keys have the URIs of resources.
func (s *said) size() int { return len(s.key) + len(s.text) }

// add keeps a copy of a message, in place of one with the same key; false: there is no room.
func (l *later) add(key string, text []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" {
		l.list = slices.DeleteFunc(l.list, func(s said) bool {
			if s.key != key {
				return false
			}
			l.size -= s.size()
			return true
		})
		_ = l.held.Set(l.size) // no more than it was
	}
	next := said{key, text}
	size := next.size()
	switch {
	case mcp.IsListChanged(key) && len(text) <= maxWord:
		l.held.Charge(size)
	case len(l.list) >= maxLater || l.size+size > maxLaterBytes || l.held.Grow(size) != nil:
		return false
	}
	next.text = bytes.Clone(text)
	l.list = append(l.list, next)
	l.size += size
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
