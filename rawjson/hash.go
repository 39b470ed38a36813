package rawjson

import (
	"encoding/binary"
	"hash/fnv"
	"hash/maphash"
)

// Hash returns a number that two texts share if they are Equal, whatever the order of their members,
// and by chance only if they are not. The text is gone over once.
func Hash(seed maphash.Seed, v []byte) uint64 {
	sum, _ := hasher{b: v, seed: seed}.value(skipSpace(v, 0), 0)
	return sum
}

// Sum is Hash with the same number in every process, so that whoever writes texts can find two
// that share one.
func Sum(v []byte) uint64 {
	sum, _ := hasher{b: v, known: true}.value(skipSpace(v, 0), 0)
	return sum
}

type hasher struct {
	b     []byte
	seed  maphash.Seed
	known bool // no seed: the numbers are anybody's
}

func (h hasher) bytes(b []byte) uint64 {
	if !h.known {
		return maphash.Bytes(h.seed, b)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b) // never fails
	return sum.Sum64()
}

// value hashes the value at i, and returns where it ends.
func (h hasher) value(i, depth int) (sum uint64, end int) {
	kind := KindOf(h.b[min(i, len(h.b)):])
	if depth < MaxDepth { // the bound is for text that was not validated
		switch kind {
		case Array:
			return h.elements(i, depth+1)
		case Object:
			return h.members(i, depth+1)
		}
	}
	end = End(h.b, i)
	return h.scalar(kind, h.b[min(i, end):end]), end
}

func (h hasher) scalar(kind Kind, v []byte) uint64 {
	switch {
	case kind == String && len(v) >= 2:
		return h.mix(uint64(kind), h.bytes(unescaped(v[1:len(v)-1])))
	case kind == Number:
		if d, ok := normalize(v); ok {
			sum := h.mix(uint64(kind), h.bytes(d.digits))
			if d.negative {
				sum++
			}
			return h.mix(sum, uint64(d.exponent))
		}
	}
	return h.bytes(v)
}

func (h hasher) elements(i, depth int) (sum uint64, end int) {
	sum = uint64(Array)
	i = skipSpace(h.b, i+1)
	for i < len(h.b) && h.b[i] != ']' {
		one, end := h.value(i, depth)
		if end == i {
			break
		}
		sum = h.mix(sum, one)
		i = nextItem(h.b, end)
	}
	return sum, min(i+1, len(h.b))
}

// members adds what its members make, as they come in any order.
func (h hasher) members(i, depth int) (sum uint64, end int) {
	sum = uint64(Object)
	i = skipSpace(h.b, i+1)
	for at(h.b, i, '"') {
		m := memberAt(h.b, i)
		value, end := h.value(m.value, depth)
		sum += h.mix(h.bytes(m.name), value)
		i = nextItem(h.b, end)
	}
	return sum, min(i+1, len(h.b))
}

func (h hasher) mix(x, y uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:], x)
	binary.LittleEndian.PutUint64(both[8:], y)
	return h.bytes(both[:])
}
