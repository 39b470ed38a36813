// Package scan reads members out of JSON text for the benchmark's stub
// servers and load generator. It is deliberately independent of the bridge's
// own JSON packages, so that a fault there cannot hide itself here, and it
// checks only as much syntax as it walks over: cheapness decides, because the
// generator and the stubs share the machine with the process under test.
package scan

import "bytes"

// Get returns the raw value of obj's member name, or nil when obj is no
// object, is malformed up to that member, or has no such member. Names are
// compared as they stand in the text.
func Get(obj []byte, name string) []byte {
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return nil
	}
	for i = space(obj, i+1); i < len(obj) && obj[i] == '"'; i = space(obj, i+1) {
		key := i
		if i = str(obj, i); i < 0 {
			return nil
		}
		match := string(obj[key+1:i-1]) == name
		if i = space(obj, i); i >= len(obj) || obj[i] != ':' {
			return nil
		}
		start := space(obj, i+1)
		if i = skip(obj, start); i < 0 {
			return nil
		}
		if match {
			return obj[start:i]
		}
		if i = space(obj, i); i >= len(obj) || obj[i] != ',' {
			return nil
		}
	}
	return nil
}

// Path walks nested members: Path(m, "params", "name").
func Path(v []byte, names ...string) []byte {
	for _, name := range names {
		if v = Get(v, name); v == nil {
			return nil
		}
	}
	return v
}

// Text returns what stands between the quotes of a raw JSON string, escapes
// untouched. ok is false when v is no string.
func Text(v []byte) (s []byte, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

// Is reports whether v is the JSON string s. s must need no escapes.
func Is(v []byte, s string) bool {
	text, ok := Text(v)
	return ok && string(text) == s
}

// Object reports whether v is a JSON object.
func Object(v []byte) bool { return len(v) >= 2 && v[0] == '{' }

// Members counts the members of obj.
func Members(obj []byte) int {
	n := 0
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return 0
	}
	for i = space(obj, i+1); i < len(obj) && obj[i] == '"'; i = space(obj, i+1) {
		if i = str(obj, i); i < 0 {
			return n
		}
		if i = space(obj, i); i >= len(obj) || obj[i] != ':' {
			return n
		}
		if i = skip(obj, space(obj, i+1)); i < 0 {
			return n
		}
		n++
		if i = space(obj, i); i >= len(obj) || obj[i] != ',' {
			return n
		}
	}
	return n
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skip returns the offset behind the value at i, or -1.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return str(b, i)
	case '{', '[':
		return nested(b, i)
	}
	start := i
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// nested skips an object or array by its depth, stepping over strings.
func nested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = str(b, i); i < 0 {
				return -1
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
	return -1
}

// str returns the offset behind the string that opens at i, or -1.
func str(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		slashes := 0
		for j := i - 2; b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}
