package rawjson

import (
	"bytes"
	"math"
	"slices"
)

// Equal reports whether a and b are the same JSON value: objects whatever the
// order of their members, strings after unescaping, numbers by their exact value
// (1, 1.0 and 10e-1 are equal).
func Equal(a, b []byte) bool { return equal(a, b, 0) }

func equal(a, b []byte, depth int) bool {
	a, b = trim(a), trim(b)
	if bytes.Equal(a, b) {
		return true
	}
	kind := KindOf(a)
	if kind != KindOf(b) || depth > MaxDepth { // the bound is for text that was not validated
		return false
	}
	switch kind {
	case String:
		return len(a) >= 2 && len(b) >= 2 && bytes.Equal(unescaped(a[1:len(a)-1]), unescaped(b[1:len(b)-1]))
	case Number:
		return sameNumber(a, b)
	case Array:
		return sameElements(a, b, depth+1)
	case Object:
		return sameMembers(a, b, depth+1)
	}
	return false
}

func trim(v []byte) []byte {
	i := skipSpace(v, 0)
	return v[i:End(v, i)]
}

func sameElements(a, b []byte, depth int) bool {
	// Positions, not an iterator per side: both arrays are walked together.
	i, j := skipSpace(a, 1), skipSpace(b, 1)
	for i < len(a) && j < len(b) && a[i] != ']' && b[j] != ']' {
		endA, endB := End(a, i), End(b, j)
		if endA == i || endB == j || !equal(a[i:endA], b[j:endB], depth) {
			return false
		}
		i, j = nextElement(a, endA), nextElement(b, endB)
	}
	return i < len(a) && j < len(b) && a[i] == ']' && b[j] == ']'
}

func nextElement(b []byte, i int) int {
	if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i
}

type member struct{ name, value []byte }

func sameMembers(a, b []byte, depth int) bool {
	x, y := sorted(a), sorted(b)
	return slices.EqualFunc(x, y, func(m, n member) bool {
		return bytes.Equal(m.name, n.name) && equal(m.value, n.value, depth)
	})
}

func sorted(obj []byte) []member {
	var all []member
	for name, value := range Members(obj) {
		all = append(all, member{name, value})
	}
	slices.SortFunc(all, func(m, n member) int { return bytes.Compare(m.name, n.name) })
	return all
}

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
