package sessions

import (
	"sync"
)

// Stream is a logical sequence of events that connections attach to and drop
// off. Events go to the log first and to the wire second, so that whatever a
// client saw can be replayed. At most one carrier is attached.
//
// Whoever appends also delivers, outside of the stream's lock: while one
// goroutine writes to a client, others only append and go on, and the first one
// sends their events afterwards. Order therefore holds without a goroutine per
// stream; only a client that doesn't keep up costs one, until it does.
type Stream struct {
	id       uint64
	volatile bool

	ended bool // with what follows guarded by mu
	mu    sync.Mutex
	log   Log
	at    *attachment
	sent  uint64 // the last event that reached a carrier's connection
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

// Queue adds an event like Append but leaves delivery to the next Flush.
func (s *Stream) Queue(data []byte) bool {
	s.mu.Lock()
	ok, lost := s.queue(data)
	s.mu.Unlock()
	letGo(lost, ErrLagging)
	return ok
}

// QueueLive is Queue for an event that is only worth having when a carrier is
// attached; it reports false when there is none.
func (s *Stream) QueueLive(data []byte) bool {
	s.mu.Lock()
	if s.at == nil {
		s.mu.Unlock()
		return false
	}
	ok, lost := s.queue(data)
	s.mu.Unlock()
	letGo(lost, ErrLagging)
	return ok && lost == nil
}

// Flush delivers what is queued.
func (s *Stream) Flush() {
	s.mu.Lock()
	gone, err := s.deliver()
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

// Seal is Finish but leaves delivery, and the carrier's end, to the next Flush.
func (s *Stream) Seal(data []byte) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	var lost *attachment
	if data != nil {
		_, lost = s.queue(data)
	}
	s.ended = true
	s.mu.Unlock()
	letGo(lost, ErrLagging)
	return true
}

// Attach makes c the stream's carrier, replays the events after the given one,
// and lets the following ones go live without gap or duplicate. An earlier
// carrier is let go. It returns how many events are missing because they had
// already left the log. Events reach the client at the next Flush.
func (s *Stream) Attach(c Carrier, after uint64) (missed uint64) {
	s.mu.Lock()
	missed, old := s.attach(c, after)
	s.mu.Unlock()
	letGo(old, ErrReplaced)
	return missed
}

// Resume is Attach for a client that names no event: it continues after the
// last one that reached a connection. While events are on their way to the earlier
// carrier's, it waits to know which.
func (s *Stream) Resume(c Carrier) {
	s.mu.Lock()
	_, old := s.attach(c, s.sent)
	if old != nil && old.source() != nil {
		s.at.after, s.at.busy = old.source(), true
	}
	s.mu.Unlock()
	letGo(old, ErrReplaced)
}

func (s *Stream) attach(c Carrier, after uint64) (missed uint64, old *attachment) {
	after = min(after, s.log.Last())
	if first := s.log.First(); after+1 < first {
		missed = first - after - 1
		after = first - 1
	}
	old = s.at
	s.at = &attachment{carrier: c, cursor: after, replay: s.log.Last(), last: now()}
	return missed, old
}

// Detach takes c off the stream, when it is still its carrier, without ending
// it: the caller is the one who ends it.
func (s *Stream) Detach(c Carrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != nil && s.at.carrier == c {
		s.at = nil
	}
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

// Exhausted reports that the stream has ended and holds nothing after this event.
func (s *Stream) Exhausted(after uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended && after >= s.log.Last()
}

// Last returns the number of the latest event, 0 before the first.
func (s *Stream) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Last()
}

// Holds reports whether an event of this number was ever sent on the stream;
// 0 stands for its beginning.
func (s *Stream) Holds(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq <= s.log.Last()
}

// queue appends under the lock. A carrier that has not yet taken over an event
// which the log now drops can no longer be served without a gap: it is lost.
func (s *Stream) queue(data []byte) (ok bool, lost *attachment) {
	if s.ended {
		return false, nil
	}
	if s.volatile && s.at == nil {
		return true, nil
	}
	s.log.Append(data)
	if s.at != nil && s.at.cursor+1 < s.log.First() {
		lost, s.at = s.at, nil
	}
	return true, lost
}
