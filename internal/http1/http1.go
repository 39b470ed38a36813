// Package http1 is the syntax of HTTP/1.1 messages (RFC 9110, RFC 9112): tokens,
// fields, lengths, chunks, media types, origins. The lean server and the lean client, and
// whoever judges or writes a header, read it the same way here. It owns no
// connection and decides nothing about what a message means.
package http1

import (
	"bytes"
	"strings"
)

// MaxHead bounds the head of a response that is read, in bytes: whoever carries responses sets it.
// net/http takes 10 MiB otherwise, which nobody is charged for.
const MaxHead = 64 << 10

// Text is what can be read: both are indexed alike.
type Text interface{ ~string | ~[]byte }

// tokenTable holds the characters of a token.
var tokenTable = func() (table [256]bool) {
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'*+-.^_`|~") {
		table[c] = true
	}
	return table
}()

// IsToken reports whether s is a token, as the names of fields and methods are.
func IsToken[T Text](s T) bool {
	for i := range len(s) {
		if !tokenTable[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// IsValue reports whether s can be written as the value of a field without
// breaking the message.
func IsValue[T Text](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// CutField splits a line of a header, which comes without its end. Names must be
// tokens and values legal, which also excludes folded lines.
func CutField[T Text](line T) (name, value T, ok bool) {
	colon := 0
	for colon < len(line) && tokenTable[line[colon]] {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return name, value, false
	}
	value = Trim(line[colon+1:])
	return line[:colon], value, IsValue(value)
}

// Trim takes spaces and tabs off both ends.
func Trim[T Text](s T) T {
	for len(s) > 0 && blank(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && blank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// CutLine splits text after its first line and strips the line's end, which may
// be a lone line feed.
func CutLine(text []byte) (line, rest []byte) {
	i := bytes.IndexByte(text, '\n')
	if i < 0 {
		return text, nil
	}
	return bytes.TrimSuffix(text[:i], []byte("\r")), text[i+1:]
}

// EqualFold compares without regard to ASCII case.
func EqualFold[T Text](a T, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Elements calls yield with each element of a comma-separated list, trimmed and
// not empty, as long as yield returns true. Commas in quoted strings count, too:
// the lists read here have none.
func Elements[T Text](list T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for begin := 0; begin <= len(list); {
			end := begin
			for end < len(list) && list[end] != ',' {
				end++
			}
			if e := Trim(list[begin:end]); len(e) > 0 && !yield(e) {
				return
			}
			begin = end + 1
		}
	}
}

// HasElement reports whether a comma-separated list names an element, without
// regard to case.
func HasElement[T Text](list T, element string) bool {
	for e := range Elements(list) {
		if EqualFold(e, element) {
			return true
		}
	}
	return false
}

// MediaType returns the lower-cased media type of a Content-Type value, without
// parameters. The usual ones cost no memory.
func MediaType[T Text](v T) string {
	end := 0
	for end < len(v) && v[end] != ';' {
		end++
	}
	v = Trim(v[:end])
	for _, usual := range [...]string{"application/json", "text/event-stream"} {
		if string(v) == usual || EqualFold(v, usual) {
			return usual
		}
	}
	return strings.ToLower(string(v))
}
