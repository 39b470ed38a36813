package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
)

// LineReader reads messages that stand on one line each (E-31). It accepts CRLF
// and skips blank lines.
type LineReader struct {
	r    *bufio.Reader
	max  int
	tail []byte // the end of the last line above the limit

	held  Held  // nil: nobody is told
	short error // of it, about the last line
}

// Held is told how much is held of a line while it comes and until the next Read, in coarse
// steps, and may refuse more.
type Held interface{ Set(bytes int) error }

// lineStep is from what size on, and in what steps, Held is told of a line, in bytes.
const lineStep = 64 << 10

// Tell has lines told to held. A line that it refuses is read like one above the limit, with its
// error in place of ErrTooLarge.
func (l *LineReader) Tell(held Held) { l.held = held }

// Refused returns why held refused the last line; nil: it did not.
func (l *LineReader) Refused() error { return l.short }

// take tells of a line of this length.
func (l *LineReader) take(size int) error {
	if l.held == nil || size <= lineStep { // so that the beginning of each is there, which has its id
		return nil
	}
	return l.held.Set(size / lineStep * lineStep)
}

// tailSize is how much of the end of a line above the limit is kept, in bytes.
const tailSize = 256

// NewLineReader returns a reader of lines of at most limit bytes.
func NewLineReader(r io.Reader, limit int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// Read returns the next line in memory of its own. For a line above the limit it
// returns the beginning, as much as the limit allows, with ErrTooLarge (Tail has
// the end), and goes on with the next line afterwards. A last line without its end counts. At the
// end it returns io.EOF.
func (l *LineReader) Read() ([]byte, error) {
	for {
		if l.held != nil {
			_ = l.held.Set(0) // less is never refused
		}
		line, tooLarge, err := l.line()
		line = bytes.TrimSpace(line)
		switch {
		case tooLarge:
			return line, cmp.Or(l.short, ErrTooLarge)
		case len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
	}
}

// Tail returns the end of the last line for which Read returned ErrTooLarge, at
// most 256 bytes, which may overlap with its beginning. It is valid until the
// next Read.
func (l *LineReader) Tail() []byte { return bytes.TrimSpace(l.tail) }

// line reads up to the next newline, keeping no more than the limit.
func (l *LineReader) line() (line []byte, tooLarge bool, err error) {
	limit := l.max
	l.short = nil
	for {
		part, err := l.r.ReadSlice('\n')
		if l.short == nil && !tooLarge {
			if l.short = l.take(len(line) + len(part)); l.short != nil {
				limit = len(line)
			}
		}
		if room := limit - len(line); l.short != nil || len(bytes.TrimRight(part, "\r\n")) > room {
			if !tooLarge {
				l.tail = l.tail[:0]
				l.keepTail(line)
			}
			l.keepTail(part)
			tooLarge, part = true, part[:min(room, len(part))]
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLarge, err
		}
	}
}

// keepTail notes the end of what was read of a line.
func (l *LineReader) keepTail(part []byte) {
	if len(part) >= tailSize {
		l.tail = append(l.tail[:0], part[len(part)-tailSize:]...)
		return
	}
	l.tail = append(l.tail, part...)
	l.tail = append(l.tail[:0], l.tail[max(0, len(l.tail)-tailSize):]...)
}

// AppendLine appends a message and the newline that ends it. Newlines within,
// which valid JSON only has between tokens, become spaces.
func AppendLine(dst, msg []byte) []byte {
	dst = append(dst, msg...)
	flatten(dst[len(dst)-len(msg):])
	return append(dst, '\n')
}

// EndLine is AppendLine for a message that may be changed: it becomes the line.
func EndLine(msg []byte) []byte {
	flatten(msg)
	return append(msg, '\n')
}

func flatten(msg []byte) {
	for i, c := range msg {
		if c == '\n' || c == '\r' {
			msg[i] = ' '
		}
	}
}
