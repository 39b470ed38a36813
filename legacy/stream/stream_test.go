package stream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// set returns the streams of a session that was brought back generation times.
func set(t *testing.T, generation uint32) *Set {
	e := NewEndpoint(Options{
		MaxStreams: 2, MaxPending: 2, KeepAlive: 15 * time.Second, Retention: time.Minute, WriteTimeout: time.Second, Rest: time.Second,
		Gate: gate.New(), Logger: zerolog.Nop(), Slow: zerolog.Nop(),
	})
	t.Cleanup(e.Close)
	s := new(Set)
	s.Init(e, &sessions.Record{ID: "s", Version: mcp.V20250618}, generation)
	return s
}

// get sends a GET, which ends by itself where the stream has ended.
func get(serve func(w http.ResponseWriter, r *http.Request)) (status int, body string) {
	w := httptest.NewRecorder()
	serve(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Code, w.Body.String()
}

func (s *Set) resumed(id string) (status int, body string) {
	last, _ := ParseEventID(id)
	return get(func(w http.ResponseWriter, r *http.Request) { s.Resume(w, r, last) })
}

// answered answers a call in this many events.
func (s *Set) answered(events int) (first string) {
	w := httptest.NewRecorder()
	st, c := s.endpoint.Begin(w, s)
	for n := range events {
		st.Append(fmt.Appendf(nil, "%d", n))
	}
	st.Finish(nil)
	c.Leave()
	s.Retire(st)
	return w.Body.String()
}

// event is how a client reads one.
func event(id, data string) string { return "event: message\nid: " + id + "\ndata: " + data + "\n\n" }

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestAClientFetchesWhatItMissed_E21(t *testing.T) {
	s := set(t, 0)
	want(t, "the call", s.answered(2), event("1-1", "0")+event("1-2", "1"))
	status, body := s.resumed("1-1")
	want(t, "the rest", body, event("1-2", "1"))
	want(t, "status", status, 200)
	status, _ = s.resumed("1-2")
	want(t, "there is no more", status, 204)
	for _, id := range []string{"1-3", "2-0", "0-1"} {
		status, _ = s.resumed(id)
		want(t, id+" names nothing", status, 400)
	}
}

func TestEndedStreamsAreFewAndKeptForAWhile_E20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, 0)
		for range 3 {
			s.answered(1)
		}
		want(t, "kept", len(s.Look()), 2)
		want(t, "not the oldest", s.Find(1) == nil, true)
		time.Sleep(time.Minute)
		s.endpoint.Run()
		want(t, "kept", len(s.Look()), 0)
	})
}

func TestPushedMessagesWaitForTheClientToListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, 0)
		for n, key := range []string{"a", "b", "a", "c"} {
			s.Push(key, fmt.Appendf(nil, "%s%d", key, n))
		}
		w, served := httptest.NewRecorder(), make(chan bool)
		go func() { served <- s.Listen(w, httptest.NewRequest(http.MethodGet, "/", nil)) }()
		synctest.Wait()
		want(t, "it listens", s.Listening(), true)
		s.Push("d", []byte("live"))
		s.Close()
		want(t, "it was served", <-served, true)
		want(t, "of each key the newest, the oldest key gave way", w.Body.String(), event("0-1", "b1")+event("0-2", "c3")+event("0-3", "live"))
		want(t, "nobody listens", s.Listening(), false)
		want(t, "afterwards", s.Listen(w, httptest.NewRequest(http.MethodGet, "/", nil)), false)
	})
}

func TestStreamOfAnEarlierProcessIsResumedByItsNamesThere(t *testing.T) {
	s := set(t, 3)
	st := s.BringBack(1<<32|7, []Event{{Seq: 4, Data: []byte("q")}, {Seq: 9, Data: []byte("r")}})
	want(t, "number", st.ID(), uint64(3<<32|7))
	st.Finish([]byte("last"))
	s.Retire(st)
	name := func(generation, seq uint64) string { return fmt.Sprintf("%d-%d", generation<<32|7, seq) }
	events := func(first int) string {
		var b strings.Builder
		for n := first; n <= 3; n++ {
			b.WriteString(event(name(3, uint64(n)), []string{"q", "r", "last"}[n-1]))
		}
		return b.String()
	}
	for id, first := range map[string]int{
		name(1, 3): 1, name(1, 4): 2, name(1, 8): 2, name(1, 9): 3, // of the process that kept it
		name(2, 1): 2, name(2, 5): 3, // of one in between
		name(0, 9): 1, // of one before
		name(3, 2): 3, // of this one
	} {
		_, body := s.resumed(id)
		want(t, id, body, events(first))
	}
	want(t, "the standalone one of another process", s.HeardBefore(EventID{1 << 32, 5}), true)
	want(t, "that of this one", s.HeardBefore(EventID{3 << 32, 5}), false)
	next, c := s.endpoint.Begin(httptest.NewRecorder(), s)
	c.Leave()
	want(t, "the next call's", next.ID(), uint64(3<<32|8))
}

func FuzzEventID(f *testing.F) {
	f.Add("1-2")
	f.Add("-")
	f.Fuzz(func(t *testing.T, s string) {
		if id, ok := ParseEventID(s); ok {
			if again, ok := ParseEventID(string(id.appendTo(nil))); !ok || again != id {
				t.Errorf("%q does not survive", s)
			}
		}
	})
}
