package sessions

// Limits bounds the event log of a stream. A log always keeps its newest event,
// even one that alone exceeds Bytes, since a stream must be able to carry the
// largest message that the bridge accepts.
type Limits struct {
	Events int // 0: DefaultEvents
	Bytes  int // 0: DefaultBytes
}

// Defaults of Limits (E-20).
const (
	DefaultEvents = 256
	DefaultBytes  = 1 << 20
)

// Log is the bounded event log of one stream: a run of events with consecutive
// sequence numbers, of which the oldest give way at Bound. The zero Log is empty
// and holds no memory. It is not safe for concurrent use.
type Log struct {
	limits  Limits
	dropped uint64 // events that once stood before events[0]
	events  [][]byte
	bytes   int
}

// Append adds an event, which the log keeps and the caller must not change, and
// returns its sequence number; the first is 1. An event without data is a mark:
// it takes a number but says nothing.
func (l *Log) Append(data []byte) uint64 {
	if l.events == nil {
		l.events = make([][]byte, 0, 4)
	}
	l.events = append(l.events, data)
	l.bytes += len(data)
	return l.Last()
}

// Over reports whether the log is beyond its limits.
func (l *Log) Over() bool {
	return len(l.events) > 1 && (len(l.events) > l.limits.events() || l.bytes > l.limits.bytes())
}

// Bound drops the oldest events until the log is within its limits, but none
// after taken.
func (l *Log) Bound(taken uint64) {
	for l.Over() && l.dropped < taken {
		l.drop()
	}
}

// Last returns the sequence number of the newest event ever appended, 0 if none.
func (l *Log) Last() uint64 { return l.dropped + uint64(len(l.events)) }

// First returns the sequence number of the oldest event still held, or Last()+1.
func (l *Log) First() uint64 { return l.dropped + 1 }

// At returns the event with this number, and false when it is not held.
func (l *Log) At(seq uint64) ([]byte, bool) {
	if seq <= l.dropped || seq > l.Last() {
		return nil, false
	}
	return l.events[seq-l.dropped-1], true
}

// Trim drops all events up to and including this number.
func (l *Log) Trim(seq uint64) {
	for len(l.events) > 0 && l.dropped < seq {
		l.drop()
	}
	if len(l.events) == 0 {
		l.events = nil
	}
}

func (l *Log) drop() {
	l.bytes -= len(l.events[0])
	l.events[0] = nil // release it now: the array behind the slice lives on
	l.events = l.events[1:]
	l.dropped++
}

func (l Limits) events() int {
	if l.Events > 0 {
		return l.Events
	}
	return DefaultEvents
}

func (l Limits) bytes() int {
	if l.Bytes > 0 {
		return l.Bytes
	}
	return DefaultBytes
}
