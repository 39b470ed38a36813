package rawjson

import (
	"bytes"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the decoded JSON string v and whether v is one. A lone surrogate
// escape becomes U+FFFD, so Text is for reading and showing; what is compared with
// another text, or written again, is for Name (P-6).
func Text(v []byte) (string, bool) { return decoded(v, false) }

// Name is Text for what tells one thing from another: a lone surrogate in it becomes
// the three bytes that Members has for it, so that distinct strings stay distinct and
// AppendQuote restores the escape. The result may be no valid UTF-8 (Readable).
func Name(v []byte) (string, bool) { return decoded(v, true) }

func decoded(v []byte, keepSurrogates bool) (string, bool) {
	raw, ok := contents(v)
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), ok
	}
	var buf [128]byte
	return string(appendDecoded(buf[:0], raw, keepSurrogates)), true
}

// TextBytes is Text without a copy: what it returns aliases v, unless v holds
// escapes.
func TextBytes(v []byte) ([]byte, bool) { return decodedBytes(v, false) }

// NameBytes is Name without a copy, as TextBytes is Text.
func NameBytes(v []byte) ([]byte, bool) { return decodedBytes(v, true) }

func decodedBytes(v []byte, keepSurrogates bool) ([]byte, bool) {
	raw, ok := contents(v)
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, ok
	}
	return appendDecoded(make([]byte, 0, len(raw)), raw, keepSurrogates), true
}

// Readable returns a name as Text reads it: with U+FFFD for each lone surrogate. It is for
// what takes valid UTF-8 alone, such as headers and pages.
func Readable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	text, _ := Text(AppendQuote(nil, name))
	return text
}

// contents returns what stands between the quotes of the string v, if it is one.
func contents(v []byte) (raw []byte, ok bool) {
	i := skipSpace(v, 0)
	if i >= len(v) || v[i] != '"' {
		return nil, false
	}
	end := skipString(v, i)
	if end < 0 {
		return nil, false
	}
	return v[i+1 : end-1 : end-1], true
}

// unescaped returns raw itself when it holds no escape, else its decoded copy.
func unescaped(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return appendUnescaped(make([]byte, 0, len(raw)), raw)
}

// appendUnescaped appends the decoded form of raw. A lone surrogate is written
// the way UTF-8 would write it if it were a character: distinct names stay
// distinct, and AppendQuote can restore the escape.
func appendUnescaped(dst, raw []byte) []byte { return appendDecoded(dst, raw, true) }

func appendDecoded(dst, raw []byte, keepSurrogates bool) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		if c := raw[i+1]; c != 'u' {
			dst = append(dst, plainEscape(c))
			raw = raw[i+2:]
			continue
		}
		var r rune
		r, raw = decodeUnicode(raw[i:])
		if utf16.IsSurrogate(r) && keepSurrogates {
			dst = append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// decodeUnicode reads the \u escape, or the pair of them, that b starts with
// and returns the rest. Half a pair comes back as the surrogate itself.
func decodeUnicode(b []byte) (rune, []byte) {
	r, ok := hex4(b)
	if !ok {
		return utf8.RuneError, b[min(len(b), 2):]
	}
	b = b[6:]
	if r < 0xD800 || r >= 0xDC00 || len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return r, b
	}
	low, ok := hex4(b)
	if !ok || low < 0xDC00 || low >= 0xE000 {
		return r, b
	}
	return utf16.DecodeRune(r, low), b[6:]
}

// hex4 reads the four digits of the \u escape that b starts with.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

const hexDigits = "0123456789abcdef"

// plainLen returns how many bytes of s, from its beginning on, stand in a JSON string as
// they are, each by itself.
func plainLen(s string) (n int) {
	for ; n+8 <= len(s); n += 8 {
		if m := stops(wordOf(s[n : n+8])); m != 0 {
			return n + bits.TrailingZeros64(m)>>3
		}
	}
	if len(s) >= 8 && stops(wordOf(s[len(s)-8:])) == 0 {
		return len(s)
	}
	for n < len(s) && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' && s[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// wordOf returns eight bytes as one word.
func wordOf(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// AppendQuote appends s as a JSON string. Only what JSON demands is escaped;
// <, > and & stay as they are. Bytes that are no UTF-8 become U+FFFD, except a
// surrogate as Members yields it, which becomes its escape again.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		i += plainLen(s[i:])
		if i == len(s) {
			break
		}
		size := 1
		if s[i] >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst, size = appendEscape(dst, s[i:], size)
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendEscape writes the first byte of s, which cannot stand in a JSON string
// as it is, and returns how many bytes of s it used.
func appendEscape(dst []byte, s string, size int) ([]byte, int) {
	switch c := s[0]; {
	case c == '"' || c == '\\':
		return append(dst, '\\', c), size
	case c == '\n':
		return append(dst, '\\', 'n'), size
	case c == '\r':
		return append(dst, '\\', 'r'), size
	case c == '\t':
		return append(dst, '\\', 't'), size
	case c < ' ':
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]), size
	case c == 0xED && len(s) >= 3 && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80:
		low := s[1]&0x3F<<6 | s[2]&0x3F
		return append(dst, '\\', 'u', 'd', hexDigits[s[1]&0x3F>>2], hexDigits[low>>4], hexDigits[low&15]), 3
	}
	return append(dst, "\uFFFD"...), size
}
