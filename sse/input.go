package sse

import (
	"bytes"
	"fmt"
	"io"
)

const (
	firstBuffer = 4 << 10  // bytes of a fresh buffer
	keepBuffer  = 64 << 10 // bytes of the largest buffer that is kept without need
	gentle      = 1 << 20  // bytes from which on a buffer grows by a quarter instead of doubling
	emptyReads  = 100      // reads without data or error before giving up
)

// input is the buffered text of a stream. buf[start:] is the event being read,
// buf[pos:] what no line was taken from.
type input struct {
	r   io.Reader
	max int
	err error // what ended the input; reported when the buffer is used up

	buf        []byte
	start, pos int
	noLF, noCR int // there is no line feed in buf[pos:noLF], no CR in buf[pos:noCR]
}

// skipMark skips a byte order mark. It returns false when too little was read to
// tell.
func (in *input) skipMark() bool {
	mark := []byte("\xEF\xBB\xBF")
	if bytes.HasPrefix(in.buf, mark) {
		in.pos = len(mark)
		return true
	}
	return in.err != nil || !bytes.HasPrefix(mark, in.buf)
}

// cut moves pos behind the next line and returns the index of its end. Both
// searches go on where they stopped: a line that arrives in many pieces, or a
// text of nothing but CR, costs no more than any other.
func (in *input) cut() (int, bool) {
	in.noLF = max(in.noLF, in.pos)
	if i := bytes.IndexByte(in.buf[in.noLF:], '\n'); i >= 0 {
		in.noLF += i
	} else {
		in.noLF = len(in.buf)
	}
	from := max(in.noCR, in.pos)
	end := in.noLF
	if i := bytes.IndexByte(in.buf[from:max(from, in.noLF)], '\r'); i >= 0 {
		end = from + i
	}
	in.noCR = end
	if end == len(in.buf) {
		return 0, false
	}
	in.pos = end + 1
	return end, true
}

// bound checks the event up to pos.
func (in *input) bound() error {
	if in.pos-in.start > in.max {
		in.err = ErrTooLarge
		in.pos = len(in.buf) // what follows is part of a broken event
		return in.err
	}
	return nil
}

// fill reads more input and returns by how much it moved the buffer's content to
// the front. It returns an error when nothing more will come.
func (in *input) fill() (shift int, err error) {
	if in.pos < len(in.buf) && len(in.buf)-in.start > in.max {
		in.err = ErrTooLarge
	}
	if in.err != nil {
		return 0, in.err
	}
	shift = in.makeRoom()
	for range emptyReads {
		n, err := in.r.Read(in.buf[len(in.buf):cap(in.buf)])
		in.buf = in.buf[:len(in.buf)+n]
		if err != nil && err != io.EOF {
			err = fmt.Errorf("sse: read: %w", err)
		}
		in.err = err
		if n > 0 || err != nil {
			return shift, nil
		}
	}
	in.err = fmt.Errorf("sse: read: %w", io.ErrNoProgress)
	return shift, in.err
}

// makeRoom makes the buffer longer than its content, first by dropping what
// stands before the current event, then by growing. A large buffer that is nearly empty is
// dropped: its stream may be silent from now on, for as long as it is open.
func (in *input) makeRoom() (shift int) {
	rest := len(in.buf) - in.start
	large := cap(in.buf) > keepBuffer && rest < cap(in.buf)/4
	if rest == 0 || large || len(in.buf) == cap(in.buf) {
		shift = in.start
		if large {
			in.buf = append(make([]byte, 0, max(firstBuffer, 2*rest)), in.buf[shift:]...)
		} else {
			in.buf = in.buf[:copy(in.buf, in.buf[shift:])]
		}
		in.start, in.pos = 0, in.pos-shift
		in.noLF, in.noCR = in.noLF-shift, in.noCR-shift
	}
	if len(in.buf) == cap(in.buf) {
		in.buf = append(make([]byte, 0, in.larger()), in.buf...)
	}
	return shift
}

// larger returns the size of the next buffer.
func (in *input) larger() int {
	size := 2 * cap(in.buf)
	if cap(in.buf) >= gentle {
		size = cap(in.buf) + cap(in.buf)/4
	}
	return max(min(size, in.max+firstBuffer), firstBuffer)
}
