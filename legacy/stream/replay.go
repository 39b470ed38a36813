package stream

import (
	"slices"

	"github.com/mcpbridge/bridge/sessions"
)

// Event is an event of an earlier process that its client may not have had.
type Event struct {
	Seq  uint64 // its number there
	Data []byte
}

// replayed is what a session knows of a stream of an earlier process: under which
// numbers its first events went out there.
type replayed struct {
	stream uint64   // there
	seqs   []uint64 // there
}

// BringBack adds a stream of an earlier process, by the number that it had there, with
// its events.
func (s *Set) BringBack(stream uint64, events []Event) *sessions.Stream {
	number := uint32(stream)
	st := sessions.NewStream(s.first|uint64(number), s.endpoint.opt.Log)
	then := replayed{stream: stream}
	for _, e := range events {
		st.Put(e.Data)
		then.seqs = append(then.seqs, e.Seq)
	}
	st.Recall()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replays == nil {
		s.replays = map[uint32]replayed{}
	}
	s.replays[number] = then
	s.last = max(s.last, st.ID())
	i, _ := s.indexLocked(st.ID())
	s.streams = slices.Insert(s.streams, i, st)
	return st
}

// translated returns which event of a stream that was brought back stands for an event of
// an earlier process. In the processes between, events had the numbers that they have now.
func (s *Set) translated(id EventID) (seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.replays[uint32(id.Stream)]
	if !ok || id.Stream < r.stream {
		return 0
	}
	if id.Stream > r.stream {
		return min(id.Seq, uint64(len(r.seqs)))
	}
	n := 0
	for n < len(r.seqs) && r.seqs[n] <= id.Seq {
		n++
	}
	return uint64(n)
}

// HeardBefore reports whether an event id is one of the standalone stream of another
// process. What came there afterwards is made up for when the session is brought back.
func (s *Set) HeardBefore(id EventID) bool { return isStandalone(id.Stream) && id.Stream < s.first }
