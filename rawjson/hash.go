package rawjson

import (
	"encoding/binary"
	"hash/maphash"
)

// Hash returns a number that two texts share if they are Equal, whatever the order of their members,
// and by chance only if they are not. The text is gone over once.
func Hash(seed maphash.Seed, v []byte) uint64 {
	sum, _ := hasher{v, seed}.value(skipSpace(v, 0), 0)
	return sum
}

type hasher struct {
	b    []byte
	seed maphash.Seed
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
		return h.mix(uint64(kind), maphash.Bytes(h.seed, unescaped(v[1:len(v)-1])))
	case kind == Number:
		if d, ok := normalize(v); ok {
			sum := h.mix(uint64(kind), maphash.Bytes(h.seed, d.digits))
			if d.negative {
				sum++
			}
			return h.mix(sum, uint64(d.exponent))
		}
	}
	return maphash.Bytes(h.seed, v)
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
		sum += h.mix(maphash.Bytes(h.seed, m.name), value)
		i = nextItem(h.b, end)
	}
	return sum, min(i+1, len(h.b))
}

func (h hasher) mix(x, y uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:], x)
	binary.LittleEndian.PutUint64(both[8:], y)
	return maphash.Bytes(h.seed, both[:])
}
