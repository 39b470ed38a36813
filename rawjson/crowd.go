package rawjson

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"sync"
)

// Nobody is charged for the names that a scan keeps, so they are kept small: four bytes for each
// name, which takes eight in the text at least, in pieces that are used again. They are looked for in a
// table of one size, as many at a time as it has room for. And few scans keep many names
// at once: there is nothing to wait for there but the processor.
const (
	pieceNames = 4 << 10 // names in a piece
	fewPieces  = 4       // up to which a scan waits for no other one
	manyScans  = 4       // that go on beyond that
	fewSlots   = 2 * fewPieces * pieceNames
	manySlots  = 8 * fewSlots
)

// A crowd has the places of the names of all open objects that are too large for the scanner's
// array: a stack, on which those of an object stand together once its last member was read.
type crowd struct {
	pieces []*[pieceNames]uint32
	size   int
	turn   bool // it has one of turns
}

var (
	crowds = sync.Pool{New: func() any { return new(crowd) }}
	pieces = sync.Pool{New: func() any { return new([pieceNames]uint32) }}
	tables = sync.Pool{New: func() any { return new([fewSlots]uint32) }}
	larger = sync.Pool{New: func() any { return new([manySlots]uint32) }} // tables of who has a turn
	turns  = make(chan struct{}, manyScans)
)

// namesSeed keeps who writes texts from choosing names whose hashes meet.
var namesSeed = maphash.MakeSeed()

// largeNames are the names of a scan's larger objects, if there are any. They stand beside the
// scanner: with what goes back to a pool in it, its other contents would have to live on the heap.
type largeNames struct{ crowd *crowd }

func (l *largeNames) release() {
	if l.crowd != nil {
		l.crowd.release()
	}
}

func (c *crowd) push(place uint32) {
	if c.size == len(c.pieces)*pieceNames {
		if len(c.pieces) == fewPieces {
			turns <- struct{}{}
			c.turn = true
		}
		c.pieces = append(c.pieces, pieces.Get().(*[pieceNames]uint32))
	}
	c.pieces[c.size/pieceNames][c.size%pieceNames] = place
	c.size++
}

func (c *crowd) at(i int) int { return int(c.pieces[i/pieceNames][i%pieceNames]) }

// release gives everything back for the next scan.
func (c *crowd) release() {
	for i, p := range c.pieces {
		pieces.Put(p)
		c.pieces[i] = nil
	}
	if c.turn {
		<-turns
	}
	*c = crowd{pieces: c.pieces[:0]}
	crowds.Put(c)
}

// repeats takes the names from first on off the stack, and reports whether two of them are equal.
func (c *crowd) repeats(b []byte, first int) bool {
	defer func() { c.size = first }()
	if c.size-first <= fewSlots/2 {
		table := tables.Get().(*[fewSlots]uint32)
		defer tables.Put(table)
		return c.meet(nameTable{b, table[:]}, first)
	}
	table := larger.Get().(*[manySlots]uint32)
	defer larger.Put(table)
	return c.meet(nameTable{b, table[:]}, first)
}

// meet puts the names from first on into a table, and reports whether two of them are equal. If there is
// not room for all of them, they are gone over more than once, each time for another part of them.
func (c *crowd) meet(t nameTable, first int) bool {
	n := c.size - first
	t.slots = t.slots[:min(1<<bits.Len(uint(2*n)), len(t.slots))] // half of them stay empty
	parts := uint64((2*n + len(t.slots) - 1) / len(t.slots))
	for part := range parts {
		clear(t.slots)
		for i := first; i < c.size; i++ {
			name := nameAt(t.b, c.at(i))
			if hash := hashName(name); hash>>32%parts == part && !t.add(name, c.at(i), hash) {
				return true
			}
		}
	}
	return false
}

// nameTable has the places of different names by their hashes; 0: none.
type nameTable struct {
	b     []byte
	slots []uint32
}

// add returns false when the name is there already.
func (t *nameTable) add(name []byte, place int, hash uint64) bool {
	mask := uint64(len(t.slots) - 1)
	for k := hash & mask; ; k = (k + 1) & mask {
		switch other := t.slots[k]; {
		case other == 0:
			t.slots[k] = uint32(place)
			return true
		case equalNames(name, nameAt(t.b, int(other))):
			return false
		}
	}
}

// nameAt returns the raw name that starts at i, behind its quote.
func nameAt(b []byte, i int) []byte { return b[i : skipString(b, i-1)-1] }

// hashName hashes what a raw name is without escapes.
func hashName(raw []byte) uint64 {
	if bytes.IndexByte(raw, '\\') >= 0 {
		var buf [64]byte
		raw = appendUnescaped(buf[:0], raw)
	}
	return maphash.Bytes(namesSeed, raw)
}
