package rawjson

import "bytes"

// Eight bytes are looked at in one step: each constant repeats a byte.
const (
	ones    = 0x0101010101010101
	tops    = 0x8080808080808080
	quotes  = 0x2222222222222222
	escapes = 0x5C5C5C5C5C5C5C5C
	blanks  = 0x2020202020202020
)

// stops marks with its top bit each byte of w that ends a run of plain string
// bytes: a quote, a backslash, a control character or one outside ASCII. Only
// the lowest mark is exact, because borrows travel upwards.
func stops(w uint64) uint64 {
	return (((w ^ quotes) - ones) | ((w ^ escapes) - ones) | (w - blanks) | w) & tops
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
// or -1 when the string has no end. It trusts escapes and characters: a quote
// ends the string unless an odd number of backslashes stands before it.
func skipString(b []byte, i int) int {
	for start := i + 1; start < len(b); {
		n := bytes.IndexByte(b[start:], '"')
		if n < 0 {
			break
		}
		quote := start + n
		slash := quote
		for slash > start && b[slash-1] == '\\' {
			slash--
		}
		start = quote + 1
		if (quote-slash)%2 == 0 {
			return start
		}
		start = skipBlocks(b, start) // an escaped quote is seldom alone
	}
	return -1
}

// End returns the index after the value of which b[i] is the first byte, for
// walks over a text by offset. In text that Validate would refuse it is any
// index from i to len(b).
func End(b []byte, i int) int {
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
	c.valueEnd = End(b, c.valueStart)
	c.i = c.valueEnd
	return true
}

// name returns the raw name of the current member.
func (c *cursor) name() []byte { return c.b[c.nameStart:c.nameEnd:c.nameEnd] }

// value returns the raw value of the current member.
func (c *cursor) value() []byte { return c.b[c.valueStart:c.valueEnd:c.valueEnd] }
