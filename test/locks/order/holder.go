package order

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
)

// rows has the row of every lock, by name. test/locks fills it in.
var rows = map[string]int{}

// broken is told of the lock that a goroutine takes although it holds another.
var broken = func(next, held string) {
	fmt.Fprintf(os.Stderr, "lock order: %s (row %d) is taken under %s (row %d)\n%s", next, rows[next], held, rows[held], debug.Stack())
	os.Exit(1) //nolint:forbidigo // a panic might be recovered from
}

// A holder is a goroutine that holds locks.
type holder struct {
	id   int64
	held []held // in the order in which they were taken; guarded by holdersMu
}

type held struct {
	lock any
	name string
}

var (
	holdersMu sync.Mutex
	holders   = map[int64]*holder{} // those who hold one
)

// current is the goroutine that runs.
func current() *holder {
	id := goroutine()
	holdersMu.Lock()
	defer holdersMu.Unlock()
	if h := holders[id]; h != nil {
		return h
	}
	return &holder{id: id}
}

// judge looks whether the goroutine may take a lock: all that it holds must come before.
func (h *holder) judge(next string) {
	holdersMu.Lock()
	all := slices.Clone(h.held)
	holdersMu.Unlock()
	for _, l := range all {
		if rows[l.name] >= rows[next] {
			broken(next, l.name)
		}
	}
}

func (h *holder) push(lock any, name string) {
	holdersMu.Lock()
	defer holdersMu.Unlock()
	h.held = append(h.held, held{lock, name})
	holders[h.id] = h
}

func (h *holder) drop(lock any) {
	holdersMu.Lock()
	defer holdersMu.Unlock()
	if i := slices.IndexFunc(h.held, func(l held) bool { return l.lock == lock }); i >= 0 {
		h.held = slices.Delete(h.held, i, i+1)
	}
	if len(h.held) == 0 && holders[h.id] == h {
		delete(holders, h.id)
	}
}

// goroutine is the number of the one that runs, which only stacks tell.
func goroutine() int64 {
	var buf [64]byte
	line := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	id, err := strconv.ParseInt(string(line[:max(bytes.IndexByte(line, ' '), 0)]), 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}
