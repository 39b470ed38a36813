package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/observe"
)

// Filter says what is recorded; the zero Filter: everything. What belongs neither to a
// session nor to a call, such as what the server is asked at the start, always is.
type Filter struct {
	Session   uint64 // as observe.Event has it; 0: any
	Client    string // the name that it declared; "": any
	Tool      string // or prompt, by its name; "": any
	Questions bool   // only calls in which the server asked something
	Failed    bool   // only calls that ended in an error
}

// String words it for people and for the head of a recording; "" for everything.
func (f Filter) String() string {
	var parts []string
	add := func(wanted bool, format string, args ...any) {
		if wanted {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(f.Session != 0, "session %d", f.Session)
	add(f.Client != "", "client %s", f.Client)
	add(f.Tool != "", "calls of %s", f.Tool)
	add(f.Questions, "calls with questions")
	add(f.Failed, "calls that failed")
	return strings.Join(parts, ", ")
}

// ofCalls reports whether it takes more than its session to judge a message.
func (f *Filter) ofCalls() bool { return f.Tool != "" || f.Questions || f.Failed }

// sieve lets those events through that a filter wants. Of a call that is not judged yet it
// holds what was said so far. It is not safe for concurrent use.
type sieve struct {
	Filter
	calls     map[uint64]*candidate
	order     []uint64 // of calls that are held, the oldest first
	questions map[string]uint64
	held      int // bytes
	dropped   int // lines that were held for too long
}

// candidate is a call that may be wanted.
type candidate struct {
	lines         [][]byte
	bytes         int
	questions     []string // that are open
	asked, failed bool
	wanted        bool // it is: nothing is held any more
	unwanted      bool
}

// Bounds of what is held: of lines in bytes, and calls. What was held longest goes first.
const (
	maxHeld  = 4 << 20
	maxCalls = 4096
)

func newSieve(f Filter) *sieve {
	return &sieve{Filter: f, calls: map[uint64]*candidate{}, questions: map[string]uint64{}}
}

// take returns the lines that are to be written now that an event, whose line this is,
// has come.
func (s *sieve) take(e *observe.Event, line []byte) [][]byte {
	switch {
	case e.Session == 0 && e.Call == 0:
		return [][]byte{line}
	case s.Session != 0 && e.Session != s.Session, s.Client != "" && e.Client != s.Client:
		return nil
	case !s.ofCalls(), e.Method == methodInitialize: // without which a call means less
		return [][]byte{line}
	}
	number := s.callOf(e)
	if number == 0 {
		return nil
	}
	c := s.calls[number]
	if c == nil {
		if e.Kind != "request" || e.Hop != observe.Downstream {
			return nil // it began before, or was given up
		}
		c = &candidate{unwanted: s.Tool != "" && e.Name != s.Tool}
		s.calls[number] = c
		s.order = append(s.order, number)
	}
	out := s.judge(c, e, line)
	if ends(e) {
		s.forget(number)
	}
	s.trim()
	return out
}

const methodInitialize = "initialize"

// callOf returns the call that an event belongs to; 0: none. Answers belong to that of
// their question.
func (s *sieve) callOf(e *observe.Event) uint64 {
	switch e.Kind {
	case "question":
		if c := s.calls[e.Call]; c != nil && len(s.questions) < maxCalls {
			s.questions[e.ID] = e.Call
			c.questions = append(c.questions, e.ID)
		}
	case "answer":
		number := s.questions[e.ID]
		delete(s.questions, e.ID)
		return number
	}
	return e.Call
}

// judge returns what is to be written of a call with its newest line.
func (s *sieve) judge(c *candidate, e *observe.Event, line []byte) [][]byte {
	c.asked = c.asked || e.Kind == "question"
	c.failed = c.failed || e.Kind == "error" && e.Hop == observe.Downstream
	switch {
	case c.unwanted:
		return nil
	case c.wanted:
		return [][]byte{line}
	case (!s.Questions || c.asked) && (!s.Failed || c.failed):
		out := append(c.lines, line)
		s.held -= c.bytes
		c.wanted, c.lines, c.bytes = true, nil, 0
		return out
	}
	c.lines = append(c.lines, line)
	c.bytes += len(line)
	s.held += len(line)
	return nil
}

// ends reports whether an event is a call's last.
func ends(e *observe.Event) bool {
	return e.Hop == observe.Downstream && e.Out && (e.Kind == "response" || e.Kind == "error" || e.Kind == "end")
}

func (s *sieve) forget(number uint64) {
	if c := s.calls[number]; c != nil {
		s.held -= c.bytes
		delete(s.calls, number)
		for _, id := range c.questions {
			delete(s.questions, id)
		}
	}
}

// trim gives up the oldest calls until the others have room.
func (s *sieve) trim() {
	for len(s.order) > 0 {
		c := s.calls[s.order[0]]
		if c != nil && s.held <= maxHeld && len(s.calls) <= maxCalls {
			break
		}
		if c != nil {
			s.dropped += len(c.lines)
			s.forget(s.order[0])
		}
		s.order = s.order[1:]
	}
	if len(s.order) > 2*maxCalls { // behind one that lasts
		s.order = slices.DeleteFunc(s.order, func(number uint64) bool { return s.calls[number] == nil })
	}
}
