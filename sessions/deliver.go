package sessions

import (
	"errors"
	"time"
)

// Carrier brings the events of a stream to a client for as long as one of its
// connections lasts. A stream never calls two methods of a carrier at once,
// except End, which may come at any time and must not wait for the stream.
type Carrier interface {
	// Write takes an event over; it only copies, and never waits for the
	// client. Data is nil for a mark.
	Write(stream, seq uint64, data []byte)
	// Flush brings what was written to the client. After the last one End
	// follows at once, so the carrier may leave the flushing to its own end.
	// ErrBlocked says that this takes waiting, which is left to Drain.
	Flush(last bool) error
	// Ping shows the client that the connection is alive. It may return
	// ErrBlocked, too.
	Ping() error
	// Drain follows ErrBlocked, on a goroutine that may wait: it brings the
	// rest to the client.
	Drain() error
	// End tells that no call follows, except a Drain that is due: err is nil
	// when the stream is finished and delivered, otherwise it says why the
	// carrier was let go.
	End(err error)
}

// Why a stream lets go of a carrier before the stream's end, and why a carrier
// doesn't finish by itself.
var (
	ErrReplaced = errors.New("stream was taken over by a newer connection")
	ErrLagging  = errors.New("client reads too slowly: the event log overflowed")
	ErrBlocked  = errors.New("client takes no more for now")
)

// An attachment is one carrier's time on a stream. Its carrier is used by one
// goroutine at a time, outside of the stream's lock; who that is, its state says:
//
//	            ┌──▶ writing: events are on their way, by a Flush or a Drain
//	free ◀──────┼──▶ held:    for a ping, or while it hands its connection on
//	            └─── waiting: for the attachment before it, which is still writing
//	                          and decides after which event this one begins
//
// Only who finds it free may take it (deliverLocked, KeepAlive, Hold), and frees it
// again (flushedLocked, Pass); a waiting one is freed by its predecessor (inheritLocked). An
// attachment that is no longer its stream's goes through the same states to its end.
type attachment struct {
	carrier Carrier
	cursor  uint64 // the last event handed to the carrier
	replay  uint64 // marks up to here are history and not repeated
	state   use
	after   *attachment   // the replaced one that it waits for
	last    time.Duration // when it was used last
	freed   chan struct{} // closed when it is free or off its stream; made only to wait
}

// use is the state of an attachment.
type use uint8

const (
	free use = iota
	writing
	held
	waiting
)

// epoch is what attachments count time from: a time.Time is three times as large.
var epoch = time.Now()

func now() time.Duration { return time.Since(epoch) }

// source returns the attachment that decides what comes next, if there is one that
// is writing.
func (at *attachment) source() *attachment {
	if at.state == writing {
		return at
	}
	return at.after
}

// freeLocked ends a use of the carrier.
func (at *attachment) freeLocked() {
	at.state = free
	at.wake()
}

// freedLocked returns what is closed when the state changes to free.
func (at *attachment) freedLocked() <-chan struct{} {
	if at.freed == nil {
		at.freed = make(chan struct{})
	}
	return at.freed
}

// wake tells who waits for at, which may be nil, to look again. The stream's lock is
// held.
func (at *attachment) wake() {
	if at != nil && at.freed != nil {
		close(at.freed)
		at.freed = nil
	}
}

// KeepAlive pings a carrier that was silent for at least this long.
func (s *Stream) KeepAlive(silence time.Duration) {
	s.mu.Lock()
	at := s.at
	if !at.quiet(silence) {
		s.mu.Unlock()
		return
	}
	at.state = held
	s.mu.Unlock()
	err := at.carrier.Ping()
	if errors.Is(err, ErrBlocked) {
		go s.drain(at)
		return
	}
	s.proceed(at, err)
}

// Quiet reports whether a carrier is attached and was silent for at least this long.
func (s *Stream) Quiet(silence time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.quiet(silence)
}

func (at *attachment) quiet(silence time.Duration) bool {
	return at != nil && at.state == free && now()-at.last >= silence
}

// Hold keeps deliveries back while c hands its connection to another carrier,
// until Pass or Release. It reports false when c is not the stream's carrier or
// is just being used.
func (s *Stream) Hold(c Carrier) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil || s.at.carrier != c || s.at.state != free {
		return false
	}
	s.at.state = held
	return true
}

// Pass puts successor in the place of c, which was held, and goes on with the
// delivery. It reports false when c was let go meanwhile.
func (s *Stream) Pass(c, successor Carrier) bool {
	s.mu.Lock()
	at := s.at
	if at == nil || at.carrier != c {
		s.mu.Unlock()
		return false
	}
	at.carrier = successor
	at.freeLocked()
	gone, err := s.deliverLocked()
	s.mu.Unlock()
	letGo(gone, err)
	return true
}

// Release ends a Hold without a successor.
func (s *Stream) Release(c Carrier) { s.Pass(c, c) }

// deliverLocked sends queued events, releasing the lock around each flush. It
// returns the attachment that the caller must let go after unlocking.
func (s *Stream) deliverLocked() (gone *attachment, err error) {
	at := s.at
	if at == nil || at.state != free {
		return nil, nil
	}
	for at.cursor < s.log.Last() {
		s.handLocked(at)
		last := s.ended
		at.state = writing
		s.mu.Unlock()
		err = at.carrier.Flush(last)
		s.mu.Lock()
		if errors.Is(err, ErrBlocked) {
			go s.drain(at)
			return nil, nil
		}
		if lost, over := s.flushedLocked(at, err); lost != nil {
			return lost, err
		} else if over {
			return s.deliverLocked()
		}
	}
	if s.ended {
		return s.unsetLocked(), nil
	}
	return nil, nil
}

// handLocked gives the carrier all queued events.
func (s *Stream) handLocked(at *attachment) {
	for _, e := range s.log.rest(at.cursor) {
		if e.data != nil || e.seq > at.replay {
			at.carrier.Write(s.id, e.seq, e.data)
		}
	}
	at.cursor = s.log.Last()
	s.boundLocked()
}

// flushedLocked notes that the carrier is free again. It reports over
// when there is nothing to deliver to it any more; gone is then to be let go,
// unless that was done before.
func (s *Stream) flushedLocked(at *attachment, err error) (gone *attachment, over bool) {
	at.last = now()
	at.freeLocked()
	if err == nil {
		s.sent = max(s.sent, at.cursor)
		s.offerLocked()
	}
	if s.at != at { // replaced or detached meanwhile; it was let go there
		s.inheritLocked(at, err)
		return nil, true
	}
	if err != nil {
		return s.unsetLocked(), true
	}
	if s.volatile {
		s.log.Trim(at.cursor)
	}
	return nil, false
}

// inheritLocked lets the successor of a replaced attachment go on, after what that one
// got across.
func (s *Stream) inheritLocked(at *attachment, err error) {
	if s.at == nil || s.at.after != at {
		return
	}
	s.at.after = nil
	if err == nil {
		s.at.cursor = max(s.at.cursor, at.cursor)
	}
	s.at.freeLocked()
}

// drain waits for a client that is behind, and then goes on with the delivery.
func (s *Stream) drain(at *attachment) { s.proceed(at, at.carrier.Drain()) }

// proceed goes on after a carrier was used.
func (s *Stream) proceed(at *attachment, err error) {
	s.mu.Lock()
	gone, _ := s.flushedLocked(at, err)
	if gone == nil {
		gone, err = s.deliverLocked()
	}
	s.mu.Unlock()
	letGo(gone, err)
}

func letGo(at *attachment, err error) {
	if at != nil {
		at.carrier.End(err)
	}
}
