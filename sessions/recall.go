package sessions

// Exhausted reports that the stream has ended and holds nothing after this event.
func (s *Stream) Exhausted(after uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended && after >= s.log.Last()
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

// Forget takes the stream off its account: it can no longer be found. Who knows it still, be it for Delivered,
// keeps no event that nobody can have.
func (s *Stream) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.log.Trim(s.log.Last())
	}
	s.log.Discharge()
}

// Delivered reports that the stream has ended and its last event reached a
// connection.
func (s *Stream) Delivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended && !s.missed && s.sent >= s.log.Last()
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
