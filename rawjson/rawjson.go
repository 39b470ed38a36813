// Package rawjson reads and edits JSON text without decoding it.
//
// It owns three things: judging a text (Validate, Survey), finding a part of
// it (Members, Elements, Get, Text, Name, Int) and splicing edits into it (Apply,
// Compact). Payloads of the protocol pass through the bridge as the bytes the
// peer wrote: large integers, member order, escapes, lone surrogates and the
// difference between absent and null all survive (P-6, P-7).
//
// It does not own any meaning: member names, envelopes and protocol rules
// belong to the packages above.
//
// Everything except Validate, Survey and AppendQuote expects text that
// Validate accepted. On other text the results are unspecified, but no function
// panics, loops or reads outside of the text.
package rawjson

import (
	"errors"
	"strconv"
)

// MaxDepth is the number of nested arrays and objects that Validate accepts.
const MaxDepth = 256

// A Kind says what sort of JSON value a text holds.
type Kind byte

// The kinds of JSON values. Invalid is the kind of an empty or unreadable text.
const (
	Invalid Kind = 0
	Null    Kind = 'n'
	False   Kind = 'f'
	True    Kind = 't'
	String  Kind = '"'
	Number  Kind = '0'
	Object  Kind = '{'
	Array   Kind = '['
)

// KindOf returns the kind of v, judged by its first byte after whitespace.
func KindOf(v []byte) Kind {
	i := skipSpace(v, 0)
	if i >= len(v) {
		return Invalid
	}
	switch c := v[i]; c {
	case 'n', 'f', 't', '"', '{', '[':
		return Kind(c)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return Invalid
}

// ErrDuplicate is what errors.Is finds in the error of a text whose only
// detected fault is a member name that occurs twice in one object.
var ErrDuplicate = errors.New("rawjson: duplicate member name")

// ErrDepth is what errors.Is finds in the error of a text that nests deeper
// than MaxDepth.
var ErrDepth = errors.New("rawjson: nested too deeply")

// A SyntaxError says why and where a text was refused. It holds no part of the
// text.
type SyntaxError struct {
	Offset int    // of the offending byte, or the length of a text that ends early
	Reason string // one of a fixed set of phrases
}

// A fault is the cause of a SyntaxError. The scanner holds it as a number: with
// strings in it, its other contents would have to live on the heap.
type fault uint8

const (
	endOfText fault = iota
	duplicate
	tooDeep
	textTooLong
	trailing
	badUTF8
	badLiteral
	badEscape
	badControl
	noValue
	noName
	noColon
	noObjectEnd
	noArrayEnd
)

var reasons = [...]string{
	endOfText:   "unexpected end of text",
	duplicate:   "duplicate member name",
	tooDeep:     "more than " + strconv.Itoa(MaxDepth) + " levels of nesting",
	textTooLong: "text too long",
	trailing:    "unexpected byte after the value",
	badUTF8:     "invalid UTF-8",
	badLiteral:  "unknown literal",
	badEscape:   "invalid escape",
	badControl:  "control character in a string",
	noValue:     "expected a value",
	noName:      "expected a member name",
	noColon:     "expected a colon",
	noObjectEnd: "expected a comma or the end of the object",
	noArrayEnd:  "expected a comma or the end of the array",
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return "json: " + e.Reason + " at byte " + strconv.Itoa(e.Offset)
}

// Is makes duplicates and excessive nesting distinguishable by errors.Is.
func (e *SyntaxError) Is(target error) bool {
	return target == ErrDuplicate && e.Reason == reasons[duplicate] ||
		target == ErrDepth && e.Reason == reasons[tooDeep]
}
