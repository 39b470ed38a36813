package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes are looked at in one step: each constant repeats a byte.
const (
	ones    = 0x0101010101010101
	tops    = 0x8080808080808080
	quotes  = 0x2222222222222222
	escapes = 0x5C5C5C5C5C5C5C5C
	blanks  = 0x2020202020202020
)

// stops marks with its top bit each byte of w that ends a run of plain string
// bytes: a quote, a backslash or a control character. Only the lowest mark is
// exact, because borrows travel upwards.
func stops(w uint64) uint64 {
	q, e := w^quotes, w^escapes
	return ((q-ones)&^q | (e-ones)&^e | (w-blanks)&^w) & tops
}

// ends is stops without control characters, which valid strings don't hold.
func ends(w uint64) uint64 {
	q, e := w^quotes, w^escapes
	return ((q-ones)&^q | (e-ones)&^e) & tops
}

// skipSpace returns the index of the first byte at or after i that is no JSON
// whitespace.
func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string whose opening quote is at i,
// or -1 when the string has no end. It trusts escapes and characters.
func skipString(b []byte, i int) int {
	i++
	for {
		for i+8 <= len(b) {
			m := ends(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
}

// skipValue returns the index after the value that starts at i. In text that
// Validate would refuse it may return any index from i to len(b).
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		if end := skipString(b, i); end >= 0 {
			return end
		}
		return len(b)
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// skipNested returns the index after the object or array that starts at i.
func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return len(b)
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// A cursor walks over the members of one object.
type cursor struct {
	b []byte
	i int // where the walk goes on; at the end, the index of the closing brace

	comma                int // index of the comma before the member, or -1
	nameStart, nameEnd   int // the name between its quotes
	valueStart, valueEnd int
}

// newCursor returns a cursor over obj and whether obj starts like an object.
func newCursor(obj []byte) (cursor, bool) {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return cursor{}, false
	}
	return cursor{b: obj, i: i + 1}, true
}

// next moves to the next member and reports whether there is one.
func (c *cursor) next() bool {
	b, i := c.b, skipSpace(c.b, c.i)
	c.i, c.comma = i, -1
	if i < len(b) && b[i] == ',' {
		c.comma = i
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '"' {
		return false
	}
	start := i + 1
	if i = skipString(b, i); i < 0 {
		return false
	}
	end := i - 1
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return false
	}
	c.nameStart, c.nameEnd = start, end
	c.valueStart = skipSpace(b, i+1)
	c.valueEnd = skipValue(b, c.valueStart)
	c.i = c.valueEnd
	return true
}

// name returns the raw name of the current member.
func (c *cursor) name() []byte { return c.b[c.nameStart:c.nameEnd:c.nameEnd] }

// value returns the raw value of the current member.
func (c *cursor) value() []byte { return c.b[c.valueStart:c.valueEnd:c.valueEnd] }
