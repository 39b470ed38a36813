package park

import "sync"

// table holds the watches. A Watch is the index of an entry, counted from 1, and
// the entry's turn, which is another one each time the entry is used: a late
// event of an earlier watch finds nobody, even when its descriptor and its entry
// are in use again.
type table struct {
	mu      sync.Mutex
	entries []entry
	free    uint32 // first free entry, counted from 1; 0: none
	turns   uint32
	count   int
	closed  bool
}

type entry struct {
	owner Owner // nil: free
	turn  uint32
	sock  Socket
	next  uint32 // of the free entries
}

func (t *table) add(sock Socket, owner Owner) (Watch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, ErrClosed
	}
	if t.free == 0 {
		t.entries = append(t.entries, entry{})
		t.free = uint32(len(t.entries))
	}
	n := t.free
	e := &t.entries[n-1]
	t.free = e.next
	t.turns++
	*e = entry{owner: owner, sock: sock, turn: t.turns}
	t.count++
	return Watch(e.turn)<<32 | Watch(n), nil
}

// take ends a watch. Only one caller gets the socket and its owner.
func (t *table) take(w Watch) (Socket, Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := uint32(w)
	if n == 0 || int(n) > len(t.entries) {
		return 0, nil
	}
	e := &t.entries[n-1]
	if e.owner == nil || e.turn != uint32(w>>32) {
		return 0, nil
	}
	sock, owner := e.sock, e.owner
	*e = entry{next: t.free}
	t.free = n
	t.count--
	if t.count == 0 && len(t.entries) > keep {
		t.entries, t.free = nil, 0 // a rush is over
	}
	return sock, owner
}

// keep is the largest number of entries that stay when none is in use.
const keep = 1024

// owners returns the owners of all watches.
func (t *table) owners() []Owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Owner, 0, t.count)
	for i := range t.entries {
		if o := t.entries[i].owner; o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (t *table) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

func (t *table) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
}
