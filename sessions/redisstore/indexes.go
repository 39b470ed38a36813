package redisstore

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/mcpbridge/bridge/sessions/store"
)

// indexName ends the key of a session's index. No record's key ends there: ids are not empty.
const indexName = "i"

// indexes knows how long the indexes of the sessions live that were written to last, so that
// a new record need not make sure of it. What it does not know costs a script.
type indexes struct {
	mu    sync.Mutex
	known *simplelru.LRU[string, *index]
}

type index struct {
	until time.Time // it lives at least
	fresh int       // records since members were looked at last
	every int       // so many of those make it time to look again
}

const (
	indexesKnown = 4096
	// After lookEvery new records of a session lookAt members of its index are looked at,
	// which are drawn by lot. So of members that name nothing there are at most about
	// as many as of others. While a look finds less than an eighth of those, the next one waits for twice
	// as many new records, mostEvery at most: it costs as much as the records themselves.
	lookEvery = 64
	lookAt    = 2 * lookEvery
	mostEvery = 16 * lookEvery
)

func newIndexes() *indexes {
	known, err := simplelru.NewLRU[string, *index](indexesKnown, nil)
	if err != nil {
		panic(err) // its size is none
	}
	return &indexes{known: known}
}

// outlive reports whether a session's index is known to outlive a record that is about to be
// written, and has room for it: after some new ones it is to be looked at.
func (x *indexes) outlive(session string, c *store.Change) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	in, ok := x.known.Get(session)
	if !ok || time.Now().Add(c.TTL).After(in.until) {
		return false
	}
	if c.Replaces == 0 {
		in.fresh++
	}
	return in.fresh < in.every
}

// look returns how many members a script that makes sure of a session's index is to look at.
func (x *indexes) look(session string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	in, ok := x.known.Get(session)
	if !ok || in.fresh < in.every {
		return 0
	}
	in.fresh = 0
	return lookAt
}

// made is told how long the index of a session lives since then, in milliseconds, how many
// members were looked at, and how many of those named nothing.
func (x *indexes) made(session string, since time.Time, lives int64, looked, gone int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	in, ok := x.known.Get(session)
	if !ok {
		in = &index{every: lookEvery}
		x.known.Add(session, in)
	}
	switch {
	case looked == 0:
	case gone < looked/8:
		in.every = min(2*in.every, mostEvery)
	default:
		in.every = lookEvery
	}
	in.until = since.Add(time.Duration(lives) * time.Millisecond)
}

// forget is told that a session's index may be gone, "" that any may be.
func (x *indexes) forget(session string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if session == "" {
		x.known.Purge()
		return
	}
	x.known.Remove(session)
}
