package sessions

import (
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/observe"
)

// Stream is a logical sequence of events that connections attach to and drop
// off. Events go to the log first and to the wire second, so that whatever a
// client saw can be replayed. At most one carrier is attached.
//
// Whoever appends also delivers, outside of the stream's lock: while one
// goroutine writes to a client, others only append and go on, and the first one
// sends their events afterwards. Order therefore holds without a goroutine per
// stream; only a client that doesn't keep up costs one, until it does.
//
// The limits of the log bound what is kept for a client that may come back. What
// the attached carrier has yet to take is never dropped: who appends more than the
// limits waits for the carrier (Queue), or has it let go (QueueLive).
type Stream struct {
	id       uint64
	of       string // by whom the call was made whose stream it is; "": by nobody in particular
	volatile bool

	ended  bool // with what follows guarded by mu
	missed bool // an event that nobody was there to receive was forgotten
	kept   bool // its end is kept elsewhere, too, from where it can be fetched
	mu     sync.Mutex
	log    Log
	at     *attachment
	sent   uint64        // the last event that reached a carrier's connection
	answer uint64        // the last event that answers a call; 0: none does
	left   time.Duration // when its last carrier went; zero: it had none yet
	spare  *budget.Spare // nil: the stream is not retired, or forgotten
}

// NewStream returns a stream whose events can be replayed within the limits.
func NewStream(id uint64, limits Limits) *Stream {
	return &Stream{id: id, log: Log{limits: limits}}
}

// NewVolatileStream returns a stream that forgets what it delivered and what
// nobody was there to receive. The limits bound what a slow client may owe.
func NewVolatileStream(limits Limits) *Stream {
	return &Stream{volatile: true, log: Log{limits: limits}}
}

// Of returns whose stream it is.
func (s *Stream) Of() string { return s.of }

// Belong has the stream be of whoever is known by this principal, before anybody can find it.
func (s *Stream) Belong(principal string) { s.of = principal }

// ID returns the stream's number within its session.
func (s *Stream) ID() uint64 { return s.id }

// Append adds an event, which it keeps, and delivers it to the attached
// carrier, if there is one. It reports false when the stream has ended.
func (s *Stream) Append(data []byte) bool {
	if !s.Queue(data) {
		return false
	}
	s.Flush()
	return true
}

// Queue adds an event like Append but leaves delivery to the next Flush. When that
// is more than the log may hold, Queue delivers, and waits until the attached
// carrier has taken it over or is let go.
func (s *Stream) Queue(data []byte) bool { return s.queue(data, "") }

// Ask is Queue for an event that asks a question of this id: for a client that comes back too
// late to get it, Lost knows which those are.
func (s *Stream) Ask(data []byte, id string) bool { return s.queue(data, id) }

func (s *Stream) queue(data []byte, question string) bool {
	s.mu.Lock()
	ok := s.addLocked(data)
	if ok && question != "" && !s.volatile {
		s.log.Asked(question)
	}
	crowded := s.crowdedLocked()
	s.mu.Unlock()
	if crowded {
		s.makeRoom()
	}
	return ok
}

// Put is Queue for those who must not wait, and who bound by themselves how much
// they add.
func (s *Stream) Put(data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addLocked(data)
}

// Answer is Put for an event that answers a call, which is owed to the client even if the last call on the stream ends without.
func (s *Stream) Answer(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answerLocked(data)
}

func (s *Stream) answerLocked(data []byte) {
	if s.addLocked(data) {
		s.answer = s.log.Last()
	}
}

// QueueLive is Put for an event that is only worth having when a carrier is
// attached; it reports false when there is none. It never waits: a carrier that is
// a whole log behind is let go.
func (s *Stream) QueueLive(data []byte) bool {
	s.mu.Lock()
	var lost *attachment
	if s.crowdedLocked() && s.at.state != free {
		lost = s.unsetLocked()
	}
	ok := s.at != nil && s.addLocked(data)
	s.mu.Unlock()
	letGo(lost, ErrLagging)
	return ok
}

// Supersede takes an event out, whether a client has had it or not: the newest one, whose
// number is returned, says all that it did.
func (s *Stream) Supersede(seq uint64) (newest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest = s.log.Last(); seq != newest {
		s.log.Remove(seq)
	}
	return newest
}

// Flush delivers what is queued.
func (s *Stream) Flush() {
	s.mu.Lock()
	gone, err := s.deliverLocked()
	s.mu.Unlock()
	letGo(gone, err)
}

// Finish ends the stream with a last event, or without one when data is nil.
// The attached carrier ends once everything was delivered. Finish reports false
// when the stream had ended before.
func (s *Stream) Finish(data []byte) bool {
	ok := s.Seal(data)
	s.Flush()
	return ok
}

// Seal is Finish but leaves delivery, and the carrier's end, to the next Flush. It
// does not wait: a last event may exceed the limits until it is delivered.
func (s *Stream) Seal(data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if data != nil {
		s.answerLocked(data)
	}
	s.ended = true
	return true
}

// Attach makes c the stream's carrier, replays the events after the given one,
// and lets the following ones go live without gap or duplicate. An earlier
// carrier is let go. It returns how many events are missing because they had
// already left the log. Events reach the client at the next Flush.
func (s *Stream) Attach(c Carrier, after uint64) (missed uint64) {
	s.mu.Lock()
	missed, old := s.attachLocked(c, after)
	s.mu.Unlock()
	letGo(old, ErrReplaced)
	return missed
}

// Resume is Attach for a client that names no event: it continues after the
// last one that reached a connection. While events are on their way to the earlier
// carrier's, it waits to know which.
func (s *Stream) Resume(c Carrier) {
	s.mu.Lock()
	_, old := s.attachLocked(c, s.sent)
	if old != nil && old.source() != nil {
		s.at.after, s.at.state = old.source(), waiting
	}
	s.mu.Unlock()
	letGo(old, ErrReplaced)
}

func (s *Stream) attachLocked(c Carrier, after uint64) (missed uint64, old *attachment) {
	after = min(after, s.log.Last())
	if first := s.log.First(); after+1 < first {
		missed = first - after - 1
		after = first - 1
	}
	old = s.at
	old.wake()
	s.at = &attachment{carrier: c, cursor: after, replay: s.log.Last(), last: now()}
	return missed, old
}

// Lost returns the ids of the questions after this event that have left the log.
func (s *Stream) Lost(after uint64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Lost(after)
}

// Detach takes c off the stream, when it is still its carrier, without ending
// it: the caller is the one who ends it. It reports whether it was.
func (s *Stream) Detach(c Carrier) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil || s.at.carrier != c {
		return false
	}
	s.unsetLocked()
	return true
}

// Attached reports whether a carrier is attached.
func (s *Stream) Attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at != nil
}

// Reachable reports whether a client is attached, or may come back and miss
// nothing of what was sent meanwhile.
func (s *Stream) Reachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at != nil || !s.volatile && s.sent > 0 && s.log.First() <= s.sent+1
}

// Look tells what there is to see of the stream at this moment.
func (s *Stream) Look() observe.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return observe.Stream{
		ID: s.id, Attached: s.at != nil, Ended: s.ended, Missing: int(s.log.Last() - s.sent), Kept: s.log.Len(),
	}
}

// addLocked appends an event. Of those that the attached carrier took over, the
// oldest give way.
func (s *Stream) addLocked(data []byte) bool {
	if s.ended {
		return false
	}
	if s.volatile && s.at == nil {
		s.missed = true
		return true
	}
	s.log.Append(data)
	s.boundLocked()
	return true
}

func (s *Stream) boundLocked() {
	taken := s.log.Last()
	if s.at != nil {
		taken = s.at.cursor
	}
	s.log.Bound(taken)
}

// crowdedLocked reports whether the attached carrier has yet to take more than the
// log may hold.
func (s *Stream) crowdedLocked() bool { return s.at != nil && s.log.Over() }

// unsetLocked takes the carrier off the stream and returns it.
func (s *Stream) unsetLocked() *attachment {
	at := s.at
	s.at = nil
	s.left = now()
	at.wake()
	s.offerLocked()
	if s.volatile {
		s.log.Trim(s.log.Last())
	}
	s.boundLocked()
	return at
}

// makeRoom delivers, and waits, until the attached carrier is less than a log
// behind. The carrier bounds how long that takes.
func (s *Stream) makeRoom() {
	s.mu.Lock()
	for s.crowdedLocked() {
		if s.at.state != free {
			freed := s.at.freedLocked()
			s.mu.Unlock()
			<-freed
		} else {
			gone, err := s.deliverLocked()
			s.mu.Unlock()
			letGo(gone, err)
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
}
