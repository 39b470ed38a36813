package rawjson

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

// Validate reports whether b is exactly one JSON value, with or without
// whitespace around it: the grammar of RFC 8259, UTF-8 throughout, at most
// MaxDepth levels, and no member name twice in one object at any depth, compared
// after unescaping. Escapes of lone surrogates are allowed (P-6). The error is a
// *SyntaxError.
func Validate(b []byte) error {
	s := scanner{b: b}
	return s.text()
}

// A Field asks Extract for one member of the outermost object.
type Field struct {
	Name  string // without quotes and escapes
	Value []byte // raw; nil when there is no such member

	start, end int // of Value while scanning: offsets let fields stay on the stack
}

// Extract validates b like Validate and, in the same pass, sets the Value of
// each field whose Name is a member of the outermost object. Values alias b.
// When b is no object no field is set. After an error the fields that were read
// before the fault are set.
func Extract(b []byte, fields []Field) error {
	for k := range fields {
		fields[k].start, fields[k].end = 0, 0
	}
	s := scanner{b: b, fields: fields}
	err := s.text()
	for k := range fields {
		fields[k].Value = nil
		if f := &fields[k]; f.end > 0 {
			f.Value = b[f.start:f.end:f.end]
		}
	}
	return err
}

// Balanced is Validate without the rules on member names and on UTF-8: it
// reports whether b is one value of the right grammar and depth. It serves to
// take a batch apart whose elements are judged one by one.
func Balanced(b []byte) error {
	s := scanner{b: b, lax: true}
	return s.text()
}

// scanner is one validating pass over a text. Its methods take the index to
// start at and return the index after what they accepted, or -1 after a fault.
type scanner struct {
	b      []byte
	fields []Field
	lax    bool // names and UTF-8 are not looked at
	escape bool // the latest string held an escape, or may have

	offset int // of the fault
	reason fault

	top   int // entries of names in use by the objects that are open
	names [32]entry
}

func (s *scanner) text() error {
	if len(s.b) > math.MaxUint32 {
		return &SyntaxError{Reason: reasons[textTooLong]}
	}
	i := s.value(skipSpace(s.b, 0), 0)
	if i >= 0 {
		if i = skipSpace(s.b, i); i < len(s.b) {
			i = s.fail(i, trailing)
		}
	}
	if i < 0 {
		return &SyntaxError{Offset: s.offset, Reason: reasons[s.reason]}
	}
	return nil
}

func (s *scanner) fail(i int, reason fault) int {
	if i >= len(s.b) && reason != duplicate {
		i, reason = len(s.b), endOfText
	}
	s.offset, s.reason = i, reason
	return -1
}

func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return s.fail(i, endOfText)
	}
	switch s.b[i] {
	case '"':
		return s.str(i)
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	}
	return s.number(i)
}

func (s *scanner) literal(i int, want string) int {
	if len(s.b)-i >= len(want) && string(s.b[i:i+len(want)]) == want {
		return i + len(want)
	}
	return s.fail(i, badLiteral)
}

func (s *scanner) object(i, depth int) int {
	b, at := s.b, i
	if depth >= MaxDepth {
		return s.fail(i, tooDeep)
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	set := nameSet{base: s.top}
	for {
		if i >= len(b) || b[i] != '"' {
			return s.fail(i, noName)
		}
		name := i + 1
		s.escape = false
		if i = s.str(i); i < 0 {
			return -1
		}
		end := i - 1
		if !s.lax && !s.add(&set, name, end) {
			return s.fail(name-1, duplicate)
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return s.fail(i, noColon)
		}
		value := skipSpace(b, i+1)
		if i = s.value(value, depth+1); i < 0 {
			return -1
		}
		if depth == 0 && s.fields != nil {
			s.capture(b[name:end], value, i)
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' {
			break
		}
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '}' {
		return s.fail(i, noObjectEnd)
	}
	s.top = set.base
	if set.wide != nil && s.repeats(set.wide) {
		return s.fail(at, duplicate)
	}
	return i + 1
}

// capture notes the top-level member with this raw name and value b[start:end].
func (s *scanner) capture(name []byte, start, end int) {
	for k := range s.fields {
		if f := &s.fields[k]; sameName(name, f.Name) {
			f.start, f.end = start, end
			return
		}
	}
}

func (s *scanner) array(i, depth int) int {
	b := s.b
	if depth >= MaxDepth {
		return s.fail(i, tooDeep)
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' {
			break
		}
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != ']' {
		return s.fail(i, noArrayEnd)
	}
	return i + 1
}

// str accepts the string whose opening quote is at i.
func (s *scanner) str(i int) int {
	b := s.b
	i++
	for pause := i + loopLead; ; {
		for words := min(pause, len(b)-7); i < words; {
			m := stops(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return s.fail(i, endOfText)
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return s.fail(i, badEscape)
			}
			s.escape = true
			i += n
		case c < ' ':
			return s.fail(i, badControl)
		case c < utf8.RuneSelf:
			i++
		default:
			if i = s.characters(i, pause); i < 0 {
				return -1
			}
		}
		if i >= pause {
			i = s.blocks(i)
			pause = i + loopLead
		}
	}
}

// blocks takes what checkBlocks accepts of the string that goes on at i. An
// escape may have been among it.
func (s *scanner) blocks(i int) int {
	end := checkBlocks(s.b, i)
	s.escape = s.escape || end > i
	return end
}

// characters accepts characters outside ASCII from i on, the first one at least
// and none that starts at limit or after.
func (s *scanner) characters(i, limit int) int {
	for ok := true; ok; ok = i < min(limit, len(s.b)) && s.b[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(s.b[i:])
		if r == utf8.RuneError && size <= 1 && !s.lax {
			return s.fail(i, badUTF8)
		}
		i += size
	}
	return i
}

// escapeLen returns the length of the escape that b starts with, 0 if it is
// none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

func (s *scanner) number(i int) int {
	if end := numberEnd(s.b, i); end > i {
		return end
	}
	return s.fail(i, noValue)
}
