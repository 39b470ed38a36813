package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/mcpbridge/bridge/sessions/store"
)

// Bounds on one reply: as much as the store asks for, and less than what hurts.
const (
	mostBulk    = store.MaxValue + 64 // bytes of a string: a record has a version before its value
	mostStrings = 512 << 20           // of all strings together
	mostItems   = 1 << 20             // values, of which the client makes room before they come
	mostLine    = 64 << 10            // bytes
	mostDepth   = 16
	mostDigits  = 8 // of the length of a string that takes the short way
)

var errGarbled = errors.New("the server does not speak Redis' protocol")

func garbled(what string) error { return fmt.Errorf("%w: %s", errGarbled, what) }

// framing follows the messages of RESP2 and RESP3 in a stream as its bytes pass. It reads what
// frames them, skips strings by their length, and keeps nothing but the first bytes of the
// latest one. It is one goroutine's.
//
//	kind ─▶ line ─▶ kind                 a value, or the head of an array, map, set, push, attribute
//	          └───▶ payload ─▶ end ─▶ kind    a string, or a chunk of one
type framing struct {
	// began is told that a message begins, and of which kind; whole that it has ended, and how
	// many values it has. said is told what the first value of a push says. Their errors end the stream.
	began func(kind byte) error
	whole func(kind byte, values int) error
	said  func(push []byte) error
	// patched reports that pushes in an array stand beside its values (Redis 6): as many
	// more follow.
	patched func() bool
	// value is told each string of an outermost message, or how it begins.
	value func(within byte, index int, text []byte)

	phase   phase
	kind    byte
	chunked bool // a string comes in chunks
	left    int  // bytes of a payload, or of what ends it
	line    [24]byte
	size    int // of the line
	last    byte
	text    [16]byte // how the latest string begins
	written int      // bytes of it, also beyond text

	depth  int
	frames [mostDepth]frame
	items  int
	bytes  int
}

type phase uint8

const (
	atKind phase = iota
	inLine
	inPayload
	atEnd
)

// scan follows more bytes, and returns how many are without fault. After an error there is
// nothing to be followed any more.
func (f *framing) scan(p []byte) (int, error) {
	for i := 0; i < len(p); {
		var err error
		n := 1
		switch f.phase {
		case atKind:
			if n, err = f.short(p[i:]); n == 0 {
				n, err = 1, f.begin(p[i])
			}
		case inLine:
			n, err = f.readLine(p[i:])
		case inPayload:
			n = min(f.left, len(p)-i)
			if f.written < len(f.text) {
				copy(f.text[f.written:], p[i:i+n])
			}
			f.written += n
			if f.left -= n; f.left == 0 {
				f.phase, f.left = atEnd, 2
			}
		case atEnd:
			if p[i] != "\n\r"[f.left-1] {
				err = garbled("a string does not end where it should")
			} else if f.left--; f.left == 0 {
				err = f.payloadEnded()
			}
		}
		if err != nil {
			return i, err
		}
		i += n
	}
	return len(p), nil
}

// short follows a string within a message that has come as a whole, as nearly all that commands are made of, and
// returns how long it is with what frames it. 0: it is none, or for the long way to judge.
func (f *framing) short(p []byte) (int, error) {
	if p[0] != '$' || f.depth == 0 || f.chunked || f.items >= mostItems {
		return 0, nil
	}
	size, i := 0, 1
	for ; i < len(p) && i <= mostDigits && p[i]-'0' <= 9; i++ {
		size = 10*size + int(p[i]-'0')
	}
	text := i + len("\r\n")
	end := text + size
	if i == 1 || len(p) < end+len("\r\n") || p[i] != '\r' || p[i+1] != '\n' || p[end] != '\r' || p[end+1] != '\n' ||
		size > mostBulk || f.bytes+size > mostStrings {
		return 0, nil
	}
	f.items++
	f.bytes += size
	f.kind, f.written = '$', size
	copy(f.text[:], p[text:end])
	return end + len("\r\n"), f.ended('$')
}

func (f *framing) begin(kind byte) error {
	if f.chunked != (kind == ';') {
		return garbled("a chunk is missing, or nobody asked for it")
	}
	if f.depth == 0 && !f.chunked {
		f.items, f.bytes = 0, 0
		if err := f.began(kind); err != nil {
			return err
		}
	}
	if f.items++; f.items > mostItems {
		return garbled("a reply has too many values")
	}
	f.phase, f.kind, f.size, f.last = inLine, kind, 0, 0
	return nil
}

// readLine reads up to the end of a line, and returns how many bytes may pass.
func (f *framing) readLine(p []byte) (int, error) {
	end := bytes.IndexByte(p, '\n')
	part := p
	if end >= 0 {
		part = p[:end]
	}
	if f.size < len(f.line) {
		copy(f.line[f.size:], part)
	}
	if f.size += len(part); f.size > mostLine {
		return 0, garbled("a line is too long")
	}
	if len(part) > 0 {
		f.last = part[len(part)-1]
	}
	if end < 0 {
		return len(part), nil
	}
	if f.size == 0 || f.last != '\r' {
		return 0, garbled("a line does not end where it should")
	}
	f.phase = atKind
	return end + 1, f.lineEnded(f.size - 1)
}

// lineEnded judges a line without its end.
func (f *framing) lineEnded(size int) error {
	word := f.line[:min(size, len(f.line))]
	switch f.kind {
	case '+', '-', '(', ',':
		f.written = copy(f.text[:], word)
		return f.ended(f.kind)
	case '_', '#':
		if (f.kind == '#') != (size == 1) || size > 1 {
			return garbled("a null or a boolean has something else in it")
		}
		return f.ended(f.kind)
	case '.':
		return f.streamEnded(size)
	}
	if size == 1 && word[0] == '?' {
		return f.stream()
	}
	n, ok := number(word)
	if !ok || size > len(f.line) {
		return garbled("a number is none")
	}
	return f.counted(n)
}

// number reads an integer that an int64 can hold.
func number(word []byte) (n int64, ok bool) {
	digits, negative := bytes.CutPrefix(word, []byte("-"))
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' || n > math.MaxInt64/10 {
			return 0, false
		}
		if n = n*10 + int64(c-'0'); n < 0 && (!negative || n != math.MinInt64) {
			return 0, false
		}
	}
	if negative {
		n = -n
	}
	return n, true
}

// counted goes on behind a number.
func (f *framing) counted(n int64) error {
	switch f.kind {
	case ':':
		return f.ended(f.kind)
	case '$', '=', '!', ';':
		return f.payload(n)
	case '*', '~', '>':
		return f.open(n, 1)
	case '%', '|':
		return f.open(n, 2)
	}
	return garbled("a message of no known kind")
}

// payload goes on with a string of n bytes.
func (f *framing) payload(n int64) error {
	if n == -1 && f.kind == '$' {
		f.written = 0
		return f.ended('_')
	}
	if n == 0 && f.kind == ';' {
		f.chunked = false
		return f.ended('$')
	}
	if n < 0 || n > mostBulk || f.bytes+int(n) > mostStrings {
		return garbled("the length of a string cannot be")
	}
	f.bytes += int(n)
	f.phase, f.left = inPayload, int(n)
	if f.kind != ';' {
		f.written = 0
	}
	if n == 0 {
		f.phase, f.left = atEnd, 2
	}
	return nil
}

func (f *framing) payloadEnded() error {
	f.phase = atKind
	if f.chunked {
		return nil
	}
	return f.ended(f.kind)
}
