package stream

import (
	"net/http/httptest"
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/sessions"
)

// TestAStreamThatComesBackOutlastsTheOneThatLeft: a call may go to another replica and come back, while what it was here
// has yet to end.
func TestAStreamThatComesBackOutlastsTheOneThatLeft(t *testing.T) {
	s := set(t, 0)
	before, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
	defer c.Leave()
	s.Forget(before)
	after := s.BringBack(before.ID(), "", []sessions.Event{{Seq: 7, Data: []byte("x")}}, 0)
	s.Forget(before)
	want(t, "what is found", s.Find(before.ID()) == after, true)
	before.Finish(nil)
	s.Retire(before, false, false)
	want(t, "streams that are kept for a while", len(s.callsLocked().retired), 0)
}

// TestAStreamOfAnotherReplicaIsNotCharged: a session whose calls come and go, as those that wait in a store do, would hold
// more and more.
func TestAStreamOfAnotherReplicaIsNotCharged(t *testing.T) {
	s, memory := set(t, 0), budget.New(1<<20)
	s.account = memory.Guest("somebody")
	st, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
	defer c.Leave()
	st.Append(make([]byte, 100<<10))
	s.Forget(st)
	st.Finish(make([]byte, 100<<10))
	want(t, "what is charged", memory.Used(), 0)
}
