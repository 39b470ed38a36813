package http1

import (
	"bytes"
	"strconv"
	"time"
)

const (
	// maxDigits keeps lengths within an int64.
	maxDigits = 18
	// maxChunkDigits does so for the sizes of chunks, which are hexadecimal.
	maxChunkDigits = 15
)

// Digits returns how many decimal digits s begins with, and their value; ok is
// false when there are none, or more than an int64 holds for sure.
func Digits[T Text](s T) (value int64, n int, ok bool) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		value = value*10 + int64(s[n]-'0')
		n++
	}
	return value, n, n > 0 && n <= maxDigits
}

// ParseLength reads a Content-Length value: digits only.
func ParseLength[T Text](s T) (int64, bool) {
	value, n, ok := Digits(s)
	return value, ok && n == len(s)
}

// ChunkRoom is the space for the head of any chunk, in bytes: 16 digits and a
// line end.
const ChunkRoom = 18

// What ends a chunk, and a chunked body without trailer.
const (
	LineEnd   = "\r\n"
	LastChunk = "0\r\n\r\n"
)

// AppendChunkHead appends what stands before the n bytes of a chunk.
func AppendChunkHead(dst []byte, n int) []byte {
	return append(strconv.AppendInt(dst, int64(n), 16), LineEnd...)
}

// AppendChunk appends a chunk with data.
func AppendChunk(dst, data []byte) []byte {
	return append(append(AppendChunkHead(dst, len(data)), data...), LineEnd...)
}

// ParseChunkSize reads a chunk's head, which must end in CRLF. Extensions are
// passed over.
func ParseChunkSize(line []byte) (int64, bool) {
	line, ok := bytes.CutSuffix(line, []byte(LineEnd))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return 0, false
	}
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > maxChunkDigits {
		return 0, false
	}
	var n int64
	for _, c := range line {
		d, ok := hexDigit(lower(c))
		if !ok {
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// maxKeepAlive bounds what KeepAlive returns.
const maxKeepAlive = 24 * time.Hour

// KeepAlive reads from a Keep-Alive value how long the peer keeps a connection
// that nobody uses: `timeout=5, max=100` says 5 s. ok is false when it does not
// say.
func KeepAlive[T Text](v T) (d time.Duration, ok bool) {
	const name = "timeout="
	for e := range Elements(v) {
		if len(e) <= len(name) || !EqualFold(e[:len(name)], name) {
			continue
		}
		if seconds, valid := ParseLength(e[len(name):]); valid {
			return time.Duration(min(seconds, int64(maxKeepAlive/time.Second))) * time.Second, true
		}
	}
	return 0, false
}

// reuseMargin is how much earlier than the peer a connection is given up: a
// request must not cross the peer's close on its way.
const reuseMargin = time.Second

// ReuseFor returns how long an idle connection may still be used whose peer
// announced a timeout. Of a short timeout half is the margin.
func ReuseFor(timeout time.Duration) time.Duration {
	return timeout - min(reuseMargin, timeout/2)
}
