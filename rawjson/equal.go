package rawjson

import (
	"bytes"
	"math"
	"slices"
)

// maxReordered is how many objects, one within the other, Equal compares whose members come in
// another order in either text. For each of them what is below it is gone over once more.
const maxReordered = 16

// Equal reports whether a and b are the same JSON value: objects whatever the
// order of their members, strings after unescaping, numbers by their exact value
// (1, 1.0 and 10e-1 are equal). Both texts are gone over together, once as far as their members
// come in the same order; values that are ordered otherwise on more than 16 levels count as different.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	p := pair{a, b}
	_, _, ok := p.value(skipSpace(a, 0), skipSpace(b, 0), 0, 0)
	return ok
}

// pair is two texts that are compared. Its methods take the places of two values, how deep they
// are, and how many of the objects around them are reordered. They return where the values end, if
// those are equal.
type pair struct{ a, b []byte }

func (p pair) value(i, j, depth, reordered int) (endA, endB int, ok bool) {
	kind := KindOf(p.a[i:])
	if kind == Invalid || kind != KindOf(p.b[j:]) || depth > MaxDepth { // the bound is for text that was not validated
		return i, j, false
	}
	switch kind {
	case Array:
		return p.elements(i, j, depth+1, reordered)
	case Object:
		return p.members(i, j, depth+1, reordered)
	}
	endA, endB = End(p.a, i), End(p.b, j)
	return endA, endB, sameScalar(kind, p.a[i:endA], p.b[j:endB])
}

func sameScalar(kind Kind, a, b []byte) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case kind == String:
		return len(a) >= 2 && len(b) >= 2 && bytes.Equal(unescaped(a[1:len(a)-1]), unescaped(b[1:len(b)-1]))
	}
	return kind == Number && sameNumber(a, b)
}

func (p pair) elements(i, j, depth, reordered int) (endA, endB int, ok bool) {
	i, j = skipSpace(p.a, i+1), skipSpace(p.b, j+1)
	for i < len(p.a) && j < len(p.b) && p.a[i] != ']' && p.b[j] != ']' {
		if i, j, ok = p.value(i, j, depth, reordered); !ok {
			return i, j, false
		}
		i, j = nextItem(p.a, i), nextItem(p.b, j)
	}
	return i + 1, j + 1, at(p.a, i, ']') && at(p.b, j, ']')
}

func (p pair) members(i, j, depth, reordered int) (endA, endB int, ok bool) {
	i, j = skipSpace(p.a, i+1), skipSpace(p.b, j+1)
	for at(p.a, i, '"') && at(p.b, j, '"') {
		m, n := memberAt(p.a, i), memberAt(p.b, j)
		if !bytes.Equal(m.name, n.name) {
			return p.rest(i, j, depth, reordered+1)
		}
		if i, j, ok = p.value(m.value, n.value, depth, reordered); !ok {
			return i, j, false
		}
		i, j = nextItem(p.a, i), nextItem(p.b, j)
	}
	return i + 1, j + 1, at(p.a, i, '}') && at(p.b, j, '}')
}

// rest compares the members from i and j on, in whatever order they come.
func (p pair) rest(i, j, depth, reordered int) (endA, endB int, ok bool) {
	if reordered > maxReordered {
		return i, j, false
	}
	x, endA := sorted(p.a, i)
	y, endB := sorted(p.b, j)
	return endA, endB, slices.EqualFunc(x, y, func(m, n place) bool {
		if !bytes.Equal(m.name(p.a), n.name(p.b)) {
			return false
		}
		_, _, ok := p.value(int(m.value), int(n.value), depth, reordered)
		return ok
	})
}

// A place is where a member of an object is in the text: its raw name, and its value. There
// may be very many, so it is small.
type place struct{ start, end, value uint32 }

func (p place) name(b []byte) []byte { return unescaped(b[p.start:p.end]) }

// sorted returns the members from i on by their names, and where their object ends.
func sorted(b []byte, i int) (all []place, end int) {
	n := 0
	for k := i; at(b, k, '"'); n++ {
		k = nextItem(b, End(b, memberAt(b, k).value))
	}
	all = make([]place, 0, n)
	for at(b, i, '"') {
		m := memberAt(b, i)
		all = append(all, place{uint32(i + 1), uint32(max(i+1, End(b, i)-1)), uint32(m.value)})
		i = nextItem(b, End(b, m.value))
	}
	slices.SortFunc(all, func(p, q place) int { return bytes.Compare(p.name(b), q.name(b)) })
	return all, min(i+1, len(b))
}

// A member has its name, without escapes, and the place of its value.
type member struct {
	name  []byte
	value int
}

// memberAt returns the member whose name's opening quote is at i.
func memberAt(b []byte, i int) member {
	end := End(b, i)
	name := unescaped(b[i+1 : max(i+1, end-1)])
	if i = skipSpace(b, end); i < len(b) { // behind the colon
		i = skipSpace(b, i+1)
	}
	return member{name, i}
}

// nextItem returns where the next member or element starts, or the closing bracket stands, behind
// the one that ends at i.
func nextItem(b []byte, i int) int {
	if i = skipSpace(b, i); at(b, i, ',') {
		i = skipSpace(b, i+1)
	}
	return i
}

func at(b []byte, i int, c byte) bool { return i < len(b) && b[i] == c }

// sameNumber compares two literals by value without rounding.
func sameNumber(a, b []byte) bool {
	x, okA := normalize(a)
	y, okB := normalize(b)
	return okA && okB && x.negative == y.negative && x.exponent == y.exponent && bytes.Equal(x.digits, y.digits)
}

// A decimal is 0.digits times ten to the exponent; digits has no zero at either
// end and is empty for zero.
type decimal struct {
	negative bool
	digits   []byte
	exponent int64
}

func normalize(v []byte) (decimal, bool) {
	var d decimal
	if len(v) > 0 && v[0] == '-' {
		d.negative, v = true, v[1:]
	}
	whole := digitsEnd(v, 0)
	digits, rest := v[:whole:whole], v[whole:]
	if len(rest) > 0 && rest[0] == '.' {
		end := digitsEnd(rest, 1)
		digits, rest = append(digits, rest[1:end]...), rest[end:]
	}
	d.exponent = int64(whole)
	if len(rest) > 0 {
		e, ok := exponent(rest[1:])
		if !ok {
			return d, false
		}
		d.exponent += e
	}
	significant := bytes.TrimLeft(digits, "0")
	d.exponent -= int64(len(digits) - len(significant))
	d.digits = bytes.TrimRight(significant, "0")
	if len(d.digits) == 0 {
		return decimal{}, true // minus zero is zero
	}
	return d, true
}

// exponent reads the digits of an exponent. One that is too large to be
// computed with is not ok: such numbers are equal only when their text is.
func exponent(v []byte) (int64, bool) {
	if len(v) > 0 && v[0] == '+' {
		v = v[1:]
	}
	n, negative := int64(0), false
	if len(v) > 0 && v[0] == '-' {
		negative, v = true, v[1:]
	}
	for _, c := range v {
		if n > math.MaxInt32 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
