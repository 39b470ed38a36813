package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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
