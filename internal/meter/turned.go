package meter

import (
	"errors"
	"slices"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Bounds of those who have been refused and are yet to leave: so many of an address, and all together no more than one
// part in so many of the memory.
const (
	turnedOfOne = 16
	turnedPart  = 64
)

// turned is who has been refused and is yet to leave, in the order in which they came. Nobody is charged for them, and
// the memory that they take all the same would be missing to others. So who came first makes room: whoever asks as
// soon as it is connected has its answer at once, while those who say nothing stay for as long as they may.
type turned struct {
	most int // of all addresses
	who  []leaving
}

// leaving is one of them, and how it is cut off.
type leaving struct {
	tab *Tab
	cut func() error
}

func newTurned(memory int64) turned {
	return turned{most: max(turnedOfOne, int(memory/turnedPart/tlsCost))}
}

// add takes one in, and returns how to cut off who makes room for it; nil: nobody has to.
func (t *turned) add(next leaving) (cut func() error) {
	if t.find(next.tab) >= 0 {
		return nil
	}
	if first := t.first(next.tab.tenant); first >= 0 {
		cut = t.who[first].cut
		t.who = slices.Delete(t.who, first, first+1)
	}
	t.who = append(t.who, next)
	return cut
}

// first returns who makes room for one more of a tenant: one of its own, if it has many; -1: nobody has to.
func (t *turned) first(tenant string) int {
	first, own := -1, 0
	for i := len(t.who) - 1; i >= 0; i-- {
		if t.who[i].tab.tenant == tenant {
			first, own = i, own+1
		}
	}
	switch {
	case own >= turnedOfOne:
		return first
	case len(t.who) >= t.most:
		return 0
	}
	return -1
}

func (t *turned) remove(tab *Tab) {
	if i := t.find(tab); i >= 0 {
		t.who = slices.Delete(t.who, i, i+1)
	}
}

func (t *turned) find(tab *Tab) int {
	return slices.IndexFunc(t.who, func(l leaving) bool { return l.tab == tab })
}

// Leaves is for who was refused and does not leave at once, since it may yet be answered: until then it may be cut off,
// by another goroutine, to make room for others. cut takes no lock but of the last row, and does not wait.
func (t *Tab) Leaves(cut func() error) {
	if t == nil || t.closed {
		return
	}
	l := t.ledger
	l.mu.Lock()
	first := l.turned.add(leaving{t, cut})
	l.mu.Unlock()
	if first != nil {
		_ = first() // without the lock: it closes a connection
	}
}

// Refusal is the answer to who was refused.
func (t *Tab) Refusal() string {
	if errors.Is(t.why, budget.ErrFull) { // which need not be this address's doing
		return refusalOfAll
	}
	return refusal
}

const (
	refusal = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\nConnection: close\r\n" +
		"Content-Length: 74\r\n\r\nthis address holds too much of the bridge's memory; try again a bit later\n"
	refusalOfAll = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\nConnection: close\r\n" +
		"Content-Length: 53\r\n\r\nthe bridge is short of memory; try again a bit later\n"
)
