package sse

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// ErrTooLarge is returned by Next when an event exceeds the decoder's bound.
var ErrTooLarge = errors.New("sse: event too large")

// DefaultMaxEvent is the bound, in bytes, of a decoder that was given none.
const DefaultMaxEvent = 4 << 20

// largestMax keeps sums of sizes from overflowing.
const largestMax = 1 << 30

// An Event is one block of the stream.
type Event struct {
	Type    string        // of the event field; "message" when there was none
	ID      string        // the stream's latest id up to this event: the cursor to resume from
	Data    []byte        // the data lines joined by \n; valid until the next call of Next
	HasData bool          // whether there was a data line; without one there is no message (E-36)
	Retry   time.Duration // of the retry field; negative when there was none
}

// A Decoder reads events from a byte stream by the algorithm of WHATWG HTML,
// section "Server-sent events": an optional byte order mark, lines that end in
// LF, CR or CRLF, comments and unknown fields ignored. Bytes that are no UTF-8
// are passed on for the reader of the data to judge. It is not safe for
// concurrent use.
type Decoder struct {
	in input

	started bool   // the byte order mark was looked for
	cr      bool   // the latest line ended in CR: a line feed right after belongs to it
	id      string // the latest id

	state              state
	ev                 Event // the event being read
	known              bool  // it has at least one field that is not ignored
	dataStart, dataEnd int   // its joined data, in the buffer
}

// A state is how far a decoder is with its current event.
type state uint8

const (
	between  state = iota // the latest event was returned, the next one not begun
	within                // some lines were taken, perhaps none
	complete              // Next has only to return it
)

// NewDecoder returns a decoder of r. maxEvent bounds one event in bytes, with
// the names of its fields and the ends of its lines; zero or less means
// DefaultMaxEvent. The decoder uses no more memory than twice the bound, and gives what a long
// event has taken back before it reads on behind it.
func NewDecoder(r io.Reader, maxEvent int) *Decoder {
	d := new(Decoder)
	d.Reset(r, maxEvent)
	return d
}

// Reset makes d a fresh decoder of r. It keeps the buffer unless that grew
// large, so decoders can be pooled; Reset(nil, 0) lets go of the reader.
func (d *Decoder) Reset(r io.Reader, maxEvent int) {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	buf := d.in.buf[:0]
	if cap(buf) > keepBuffer {
		buf = nil
	}
	*d = Decoder{in: input{r: r, max: min(maxEvent, largestMax), buf: buf}}
}

// Next returns the next event that has at least one known field, with or
// without data. The end of the stream is io.EOF; an event that it cuts off is
// dropped. An event beyond the bound is ErrTooLarge, and any other read error
// comes wrapped after the events before it. Errors are final.
func (d *Decoder) Next() (Event, error) {
	for !d.Ready() {
		shift, err := d.in.fill()
		if err != nil {
			return Event{}, err
		}
		d.dataStart -= shift
		d.dataEnd -= shift
	}
	d.state = between
	return d.event(), nil
}

// Held returns how many bytes the decoder holds beyond what it takes for small events: its
// buffer where that has grown, and a long id, which lasts.
func (d *Decoder) Held() (bytes int) {
	if cap(d.in.buf) > keepBuffer {
		bytes = cap(d.in.buf)
	}
	if words := len(d.id) + len(d.ev.Type); words > firstBuffer {
		bytes += words
	}
	return bytes
}

// Ready reports whether Next has an event to return without reading, so that a
// caller who passes events on knows when to flush. It does not read itself, and
// the data of the latest event stays valid.
func (d *Decoder) Ready() bool {
	if d.state == between {
		d.discard()
		d.state = within
	}
	for d.state == within {
		from, to, ok := d.line()
		switch {
		case !ok || from < to && d.in.bound() != nil: // fill returns that error
			return false
		case from < to:
			d.field(from, to)
			if !d.known {
				d.discard() // leading comments don't count against the bound
			}
		case d.known:
			d.state = complete
		default:
			d.discard()
		}
	}
	return true
}

// discard starts a new event at the current line.
func (d *Decoder) discard() {
	d.in.start = d.in.pos
	d.known = false
	d.ev = Event{Type: "message", Retry: -1}
}

// event completes the event that was read.
func (d *Decoder) event() Event {
	d.ev.ID = d.id
	if d.ev.HasData {
		d.ev.Data = d.in.buf[d.dataStart:d.dataEnd:d.dataEnd]
	}
	return d.ev
}

// line takes the next line and returns its place in the buffer. It returns
// false when the line's end has not been read.
func (d *Decoder) line() (from, to int, ok bool) {
	in := &d.in
	if !d.started {
		if !in.skipMark() {
			return 0, 0, false
		}
		d.started = true
		d.discard()
	}
	if d.cr && in.pos < len(in.buf) {
		d.cr = false
		if in.buf[in.pos] == '\n' {
			in.pos++
			if !d.known {
				d.discard()
			}
		}
	}
	from = in.pos
	to, ok = in.cut()
	if ok {
		d.cr = in.buf[to] == '\r'
	}
	return from, to, ok
}

// field applies the line buf[from:to].
func (d *Decoder) field(from, to int) {
	name, value := d.in.buf[from:to], to
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		name, value = name[:i], from+i+1
		if value < to && d.in.buf[value] == ' ' {
			value++
		}
	}
	text := d.in.buf[value:to]
	switch string(name) {
	case "data":
		d.data(value, to)
	case "event":
		d.ev.Type = typeName(text)
	case "id":
		if bytes.IndexByte(text, 0) >= 0 {
			return
		}
		if d.id != string(text) {
			d.id = string(text)
		}
	case "retry":
		wait, ok := milliseconds(text)
		if !ok {
			return
		}
		d.ev.Retry = wait
	default:
		return
	}
	d.known = true
}

// data adds a data line. It is moved up to the one before, over the field name
// and line end between them, so that several lines need no second buffer.
func (d *Decoder) data(from, to int) {
	if !d.ev.HasData {
		d.ev.HasData = true
		d.dataStart, d.dataEnd = from, to
		return
	}
	d.in.buf[d.dataEnd] = '\n'
	d.dataEnd += 1 + copy(d.in.buf[d.dataEnd+1:], d.in.buf[from:to])
}

// typeName returns the event type, without memory for the usual ones.
func typeName(v []byte) string {
	switch string(v) {
	case "", "message":
		return "message"
	case "endpoint":
		return "endpoint"
	case "ping":
		return "ping"
	}
	return string(v)
}

// maxRetry is what larger retry fields are cut to.
const maxRetry = 24 * time.Hour

func milliseconds(v []byte) (time.Duration, bool) {
	if len(v) == 0 {
		return 0, false
	}
	var d time.Duration
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		d = min(d*10+time.Duration(c-'0')*time.Millisecond, maxRetry)
	}
	return d, true
}
