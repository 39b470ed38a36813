package wiretest

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const lineWidth = 140

// fit lays JSON text out for reading: a value that fits on a line stays on one,
// a longer one is broken per member. No token is changed, so escapes and
// number spellings are those of the wire.
func fit(text []byte, indent string) string {
	if !json.Valid(text) {
		return indent + string(text) + "\n"
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, text) // cannot fail: the text is valid
	var b strings.Builder
	b.WriteString(indent)
	fitValue(&b, compact.Bytes(), indent, 0)
	b.WriteByte('\n')
	return b.String()
}

func fitValue(b *strings.Builder, v []byte, indent string, used int) {
	if utf8.RuneCountInString(indent)+used+utf8.RuneCount(v) <= lineWidth || (v[0] != '{' && v[0] != '[') {
		b.Write(v)
		return
	}
	b.WriteByte(v[0])
	inner := indent + "  "
	for i, part := range split(v[1 : len(v)-1]) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + inner)
		name, value := member(part, v[0] == '{')
		b.Write(name)
		fitValue(b, value, inner, utf8.RuneCount(name))
	}
	b.WriteString("\n" + indent)
	b.WriteByte(v[len(v)-1])
}

// member cuts an object's member into its name with the colon and its value.
func member(part []byte, object bool) (name, value []byte) {
	if !object {
		return nil, part
	}
	end := stringEnd(part, 0) + 1 // the colon follows the closing quote
	return part[:end+1], part[end+1:]
}

// split cuts the inside of a compact object or array at its top-level commas.
func split(inside []byte) (parts [][]byte) {
	depth, start := 0, 0
	for i := 0; i < len(inside); i++ {
		switch inside[i] {
		case '"':
			i = stringEnd(inside, i)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, inside[start:i])
				start = i + 1
			}
		}
	}
	if start < len(inside) {
		parts = append(parts, inside[start:])
	}
	return parts
}

// stringEnd returns the index of the quote that closes the string opened at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
