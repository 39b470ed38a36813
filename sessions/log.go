package sessions

import (
	"cmp"
	"slices"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Limits bounds the event log of a stream. A log always keeps its newest event,
// even one that alone exceeds Bytes, since a stream must be able to carry the
// largest message that the bridge accepts.
type Limits struct {
	Events int // 0: DefaultEvents
	Bytes  int // 0: DefaultBytes
	// Account is charged for what the log holds. While it is tight, and nothing is spare, nothing is held for
	// a client that may come back. It may be nil.
	Account *budget.Account
}

// eventCost is what an event is charged for besides its data, in bytes.
const eventCost = 64

// Defaults of Limits (E-20).
const (
	DefaultEvents = 256
	DefaultBytes  = 1 << 20
)

// Log is the bounded event log of one stream: events with rising sequence
// numbers, of which the oldest give way at Bound. The numbers are consecutive but for
// what Leap leaves out, and Remove takes out. The zero Log is empty and holds no memory. It is not safe for
// concurrent use.
type Log struct {
	limits  Limits
	dropped uint64 // number of the newest event that gave way
	last    uint64 // number of the newest event ever
	events  []logged
	bytes   int
	asked   []asked // the newest questions, oldest first
}

// asked is a question that an event asks, which its client must not lose.
type asked struct {
	seq uint64
	id  string
}

// maxAsked is how many questions of a stream are known: more are not open at a time.
const maxAsked = 64

type logged struct {
	seq  uint64
	data []byte
}

// Append adds an event, which the log keeps and the caller must not change, and
// returns its sequence number; the first is 1. An event without data is a mark:
// it takes a number but says nothing.
func (l *Log) Append(data []byte) uint64 {
	if l.events == nil {
		l.events = make([]logged, 0, 4)
	}
	l.last++
	l.events = append(l.events, logged{l.last, data})
	l.bytes += len(data)
	l.limits.Account.Charge(len(data) + eventCost)
	return l.last
}

// Asked notes that the newest event asks a question of this id.
func (l *Log) Asked(id string) {
	if len(l.asked) == maxAsked {
		l.asked = slices.Delete(l.asked, 0, 1)
	}
	l.asked = append(l.asked, asked{l.last, id})
}

// Lost returns the ids of the questions after this number that have given way.
func (l *Log) Lost(after uint64) (ids []string) {
	for _, q := range l.asked {
		if q.seq > after && q.seq <= l.dropped {
			ids = append(ids, q.id)
		}
	}
	return ids
}

// Leap leaves numbers out: the next event gets the one after seq.
func (l *Log) Leap(seq uint64) { l.last = max(l.last, seq) }

// Over reports whether the log is beyond its limits.
func (l *Log) Over() bool {
	return len(l.events) > 1 && (len(l.events) > l.limits.events() || l.bytes > l.limits.bytes() || l.limits.Account.StillTight())
}

// Bound drops the oldest events until the log is within its limits, but none
// after taken.
func (l *Log) Bound(taken uint64) {
	for len(l.events) > 0 && l.events[0].seq <= taken && l.Over() {
		l.drop()
	}
}

// Len returns how many events are held.
func (l *Log) Len() int { return len(l.events) }

// Last returns the sequence number of the newest event ever appended or left out, 0 if
// there is none.
func (l *Log) Last() uint64 { return l.last }

// First returns the number after that of the newest event that gave way: from there on
// all are held.
func (l *Log) First() uint64 { return l.dropped + 1 }

// After returns the oldest event that is held after this number, and false when there
// is none.
func (l *Log) After(seq uint64) (next uint64, data []byte, ok bool) {
	rest := l.rest(seq)
	if len(rest) == 0 {
		return 0, nil, false
	}
	return rest[0].seq, rest[0].data, true
}

// rest returns all events that are held after this number.
func (l *Log) rest(seq uint64) []logged {
	i, found := slices.BinarySearchFunc(l.events, seq, func(e logged, seq uint64) int { return cmp.Compare(e.seq, seq) })
	if found {
		i++
	}
	return l.events[i:]
}

// Trim drops all events up to and including this number.
func (l *Log) Trim(seq uint64) {
	for len(l.events) > 0 && l.events[0].seq <= seq {
		l.drop()
	}
	if len(l.events) == 0 {
		l.events = nil
	}
}

// Remove drops one event, if it is held.
func (l *Log) Remove(seq uint64) {
	i, found := slices.BinarySearchFunc(l.events, seq, func(e logged, seq uint64) int { return cmp.Compare(e.seq, seq) })
	if found {
		size := len(l.events[i].data)
		l.limits.Account.Give(size + eventCost)
		l.bytes -= size
		l.events = slices.Delete(l.events, i, i+1)
	}
}

// Discharge takes what the log holds off its account: nobody comes back for it.
func (l *Log) Discharge() {
	l.limits.Account.Give(l.charged())
	l.limits.Account = nil
}

// charged returns what its account is charged for what it holds.
func (l *Log) charged() int { return l.bytes + len(l.events)*eventCost }

func (l *Log) drop() {
	l.limits.Account.Give(len(l.events[0].data) + eventCost)
	l.bytes -= len(l.events[0].data)
	l.dropped = l.events[0].seq
	l.events[0].data = nil // release it now: the array behind the slice lives on
	l.events = l.events[1:]
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
