package stream

import (
	"testing"

	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/sessions"
)

// TestACallIsOverThatEndedHereAndWasLeftToNobody, as far as its session knows by the numbers of streams.
func TestACallIsOverThatEndedHereAndWasLeftToNobody(t *testing.T) {
	var s Set
	s.Init(NewEndpoint(Options{Gate: new(gate.Gate), MaxStreams: 1}), unused{}, &sessions.Record{}, nil, First(1, 1))
	is := func(what string, id uint64, over bool) {
		t.Helper()
		want(t, what, s.IsOver(id), over)
	}
	end := func(st *sessions.Stream) {
		st.Finish(nil)
		s.Retire(st, false, false)
	}
	ended, left := s.add(""), s.add("")
	is("one that is under way", ended.ID(), false)
	is("one to come", left.ID()+1, false)
	is("another process'", uint64(First(2, 1))+1, false)
	end(ended)
	is("one that can be fetched", ended.ID(), false)
	s.Forget(left)
	is("one that left", left.ID(), false)
	end(s.add(""))
	is("one that is forgotten", ended.ID(), true)
	back := s.BringBack(left.ID(), "", nil, 0)
	is("one that came back", left.ID(), false)
	end(back)
	end(s.add(""))
	is("one that has ended since", left.ID(), true)
	s.Forget(ended)
	is("one that goes on elsewhere after all", ended.ID(), false)
	s.Close()
	is("one of a session that is over", left.ID(), false)
}
