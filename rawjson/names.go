package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxLinear is the number of members up to which each new name is compared with
// those before it. The names of larger objects are noted, and looked through once at their end.
const maxLinear = 16

// An entry is a member name of an object that is being scanned.
type entry struct {
	key        uint64 // equal for equal names, mostly different for others
	start, end uint32 // the raw name in the text
}

// A nameSet holds the names of one open object: first as a section of the
// scanner's fixed array, from base on, then as one of its crowd, from first on.
type nameSet struct {
	base  int
	wide  bool
	first int
}

// add puts the name b[start:end] into set. It returns false when the name is
// known to be a duplicate.
func (s *scanner) add(set *nameSet, start, end int) bool {
	if set.wide || s.top-set.base == maxLinear || s.top == len(s.names) {
		if !set.wide {
			s.widen(set)
		}
		s.large.crowd.push(uint32(start))
		return true
	}
	e := entry{start: uint32(start), end: uint32(end)}
	if s.escape {
		var buf [64]byte
		e.key = nameKey(appendUnescaped(buf[:0], s.b[start:end]))
	} else {
		e.key = nameKey(s.b[start:end])
	}
	for k := range s.names[set.base:s.top] {
		if o := &s.names[set.base+k]; o.key == e.key && s.same(o, &e) {
			return false
		}
	}
	s.names[s.top] = e
	s.top++
	return true
}

// widen has the crowd hold the names of an object that has become too large for the array.
func (s *scanner) widen(set *nameSet) {
	if s.large.crowd == nil {
		s.large.crowd = crowds.Get().(*crowd)
	}
	set.wide, set.first = true, s.large.crowd.size
	for _, e := range s.names[set.base:s.top] {
		s.large.crowd.push(e.start)
	}
}

// same compares two names by their unescaped bytes.
func (s *scanner) same(x, y *entry) bool {
	return equalNames(s.b[x.start:x.end], s.b[y.start:y.end])
}

// equalNames compares raw names by what they are without escapes.
func equalNames(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Equal(a, b)
	}
	var bufA, bufB [64]byte
	return bytes.Equal(appendUnescaped(bufA[:0], a), appendUnescaped(bufB[:0], b))
}

// nameKey folds an unescaped name into a word. Collisions cost time only.
func nameKey(b []byte) uint64 {
	n := len(b)
	switch {
	case n >= 8:
		last := binary.LittleEndian.Uint64(b[n-8:])
		return binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(last, 29) ^ uint64(n)<<56
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		return uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16 | uint64(n)<<24
	}
	return 0
}
