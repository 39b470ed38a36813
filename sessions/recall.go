package sessions

import (
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Exhausted reports that the stream has ended and holds nothing after this event, which its client names as the last that
// it has had: so it was delivered.
func (s *Stream) Exhausted(after uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || after < s.log.Last() {
		return false
	}
	s.sent = s.log.Last()
	s.offerLocked()
	return true
}

// Event is an event, its number, and what it asks.
type Event struct {
	Seq      uint64
	Data     []byte
	Question string // the id of the one that it asks; empty: none
}

// Recall gives a new stream the events that it had in another process, which has sent
// them and possibly others up to last: the next one gets the number after that.
func (s *Stream) Recall(events []Event, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.log.Leap(e.Seq - 1)
		s.log.Append(e.Data)
		if e.Question != "" {
			s.log.Asked(e.Question)
		}
	}
	s.log.Leap(last)
	s.sent = s.log.Last()
}

// Owe says that nobody knows whether the events which the stream was given have reached its client.
func (s *Stream) Owe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = min(s.sent, s.log.First()-1)
	s.answer = s.log.Last()
}

// Forget takes the stream off its account: it can no longer be found. Who knows it still, be it for Delivered,
// keeps no event that nobody can have.
func (s *Stream) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked()
}

func (s *Stream) forgetLocked() {
	if s.at == nil {
		s.log.Trim(s.log.Last())
	}
	s.retireLocked(nil)
	s.log.Discharge()
}

// Retire has an ended stream that was delivered be forgotten before anybody is refused for want of memory; nil takes that back. kept: one
// that was not, too, since its end is kept elsewhere.
func (s *Stream) Retire(spare *budget.Spare, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = kept
	s.retireLocked(spare)
}

func (s *Stream) retireLocked(spare *budget.Spare) {
	s.spare.Withdraw()
	s.spare = spare
	s.offerLocked()
}

// offerLocked is called when the stream may have become one that was delivered, and that nobody has come back for.
func (s *Stream) offerLocked() {
	if s.spare != nil && s.restsLocked() {
		s.spare.Offer(s.log.limits.Account, s.log.charged())
	}
}

// restsLocked is Rests. What was brought back from where it is kept is for somebody who is about to attach.
func (s *Stream) restsLocked() bool {
	return s.at == nil && (s.deliveredLocked() || s.kept && s.ended && s.left != 0)
}

// Rests reports that the stream has ended, that nobody has come back for it, and that its end was delivered or is kept elsewhere.
func (s *Stream) Rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restsLocked()
}

// TryForget is Forget for a stream that rests. It reports whether it was one, and waits for
// nobody: busy says that somebody is just using it.
func (s *Stream) TryForget() (forgotten, busy bool) {
	if !s.mu.TryLock() {
		return false, true
	}
	defer s.mu.Unlock()
	if !s.restsLocked() {
		return false, false
	}
	s.forgetLocked()
	return true, false
}

// Delivered reports that the stream has ended and its last event reached a
// connection.
func (s *Stream) Delivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveredLocked()
}

func (s *Stream) deliveredLocked() bool { return s.ended && !s.missed && s.sent >= s.log.Last() }

// Owed reports that the stream has ended, and that its client is yet to fetch an answer: it is just doing so, or knows
// where to go on and left no longer ago than this. What was said before the end of a call that was cancelled nobody comes for.
func (s *Stream) Owed(within time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owingLocked() {
		return false
	}
	return s.at != nil || s.sent > 0 && s.left != 0 && now()-s.left < within
}

// Owing reports that the stream has ended with an answer that has not reached a connection.
func (s *Stream) Owing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owingLocked()
}

func (s *Stream) owingLocked() bool { return s.ended && s.sent < s.answer }

// Response returns the response that the stream has ended with, and its number, while that is here; nil: it has none.
func (s *Stream) Response() (seq uint64, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.answer == 0 {
		return 0, nil
	}
	if seq, data, ok := s.log.After(s.answer - 1); ok && seq == s.answer {
		return seq, data
	}
	return 0, nil
}

// Last returns the number of the latest event, 0 before the first.
func (s *Stream) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Last()
}

// Follows reports whether there is an event to replay after this one. Behind those that
// Recall left out there is none.
func (s *Stream) Follows(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, ok := s.log.After(seq)
	return ok
}

// Holds reports whether an event of this number was ever sent on the stream;
// 0 stands for its beginning.
func (s *Stream) Holds(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq <= s.log.Last()
}
