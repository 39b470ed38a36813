package rawjson

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// maxLinear is the number of members up to which each new name is compared with
// those before it. Larger objects are sorted once at their end, so that no
// object costs more than n log n comparisons.
const maxLinear = 16

// An entry is a member name of an object that is being scanned.
type entry struct {
	key        uint64 // equal for equal names, mostly different for others
	start, end uint32 // the raw name in the text
}

// A nameSet holds the names of one open object: first as a section of the
// scanner's fixed array, from base on, then in wide.
type nameSet struct {
	base int
	wide []entry
}

// add puts the name b[start:end] into set. It returns false when the name is
// known to be a duplicate.
func (s *scanner) add(set *nameSet, start, end int) bool {
	e := entry{start: uint32(start), end: uint32(end)}
	if s.escape {
		var buf [64]byte
		e.key = nameKey(appendUnescaped(buf[:0], s.b[start:end]))
	} else {
		e.key = nameKey(s.b[start:end])
	}
	if set.wide != nil || s.top-set.base == maxLinear || s.top == len(s.names) {
		if set.wide == nil {
			set.wide = append(make([]entry, 0, 4*maxLinear), s.names[set.base:s.top]...)
		}
		set.wide = append(set.wide, e)
		return true
	}
	for k := range s.names[set.base:s.top] {
		if o := &s.names[set.base+k]; o.key == e.key && s.compare(*o, e) == 0 {
			return false
		}
	}
	s.names[s.top] = e
	s.top++
	return true
}

// repeats sorts the names of a large object and reports whether two are equal.
func (s *scanner) repeats(names []entry) bool {
	slices.SortFunc(names, s.compare)
	for k := 1; k < len(names); k++ {
		if s.compare(names[k-1], names[k]) == 0 {
			return true
		}
	}
	return false
}

// compare orders names by key, then by their unescaped bytes.
func (s *scanner) compare(x, y entry) int {
	if x.key != y.key {
		return cmp.Compare(x.key, y.key)
	}
	a, b := s.b[x.start:x.end], s.b[y.start:y.end]
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Compare(a, b)
	}
	var bufA, bufB [64]byte
	return bytes.Compare(appendUnescaped(bufA[:0], a), appendUnescaped(bufB[:0], b))
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
