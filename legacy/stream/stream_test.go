package stream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unused is a session that nobody asks when it was used.
type unused struct{}

func (unused) Used() {}

// set returns the streams of a session at a replica with this number.
func set(t *testing.T, replica downstream.ReplicaID) *Set {
	e := NewEndpoint(Options{
		MaxStreams: 2, MaxOwed: 4, MaxPending: 2, KeepAlive: 15 * time.Second, Retention: time.Minute, WriteTimeout: time.Second, ParkAfter: time.Second,
		Gate: gate.New(), Logger: zerolog.Nop(), Slow: zerolog.Nop(),
	})
	t.Cleanup(e.Close)
	s := new(Set)
	s.Init(e, unused{}, &sessions.Record{ID: "s", Version: mcp.V20250618}, nil, First(replica, 0))
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
	return get(func(w http.ResponseWriter, r *http.Request) {
		s.Resume(w, r, &downstream.Caller{}, last, downstream.Term{}, nil)
	})
}

// answered answers a call in this many events.
func (s *Set) answered(events int) (first string) {
	w := httptest.NewRecorder()
	st, c := s.endpoint.Begin(w, nil, s, "", nil)
	for n := range events {
		st.Append(fmt.Appendf(nil, "%d", n))
	}
	st.Finish(nil)
	c.Leave()
	s.Retire(st, false, false)
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
		go func() { served <- s.Listen(w, httptest.NewRequest(http.MethodGet, "/", nil), downstream.Term{}) }()
		synctest.Wait()
		want(t, "it listens", s.Listening(), true)
		s.Push("d", []byte("live"))
		s.Close()
		want(t, "it was served", <-served, true)
		want(t, "of each key the newest, the oldest key gave way", w.Body.String(), event("0-1", "b1")+event("0-2", "c3")+event("0-3", "live"))
		want(t, "nobody listens", s.Listening(), false)
		want(t, "afterwards", s.Listen(w, httptest.NewRequest(http.MethodGet, "/", nil), downstream.Term{}), false)
	})
}

// A server says what it has to say of its lists to all sessions: of each the newest word is kept
// for a client that comes back, not the last 256.
func TestOfWordsOnAListTheNewestIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(64 << 20)
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		s := set(t, 0)
		s.account = account
		w, served := httptest.NewRecorder(), make(chan bool)
		go func() { served <- s.Listen(w, httptest.NewRequest(http.MethodGet, "/", nil), downstream.Term{}) }()
		synctest.Wait()
		before := memory.Used()
		for n := range 1000 { // more than a log has: nobody is let go for it
			s.Push(mcp.NotificationToolsListChanged, fmt.Appendf(nil, "tools%d", n))
			s.Push(mcp.NotificationPromptsListChanged, fmt.Appendf(nil, "prompts%d", n))
		}
		s.Push("other", []byte("other"))
		s.Push("other", []byte("other"))
		want(t, "kept", s.Look()[0].Kept, 4)
		if held := memory.Used() - before; held > 4*100 {
			t.Errorf("%d bytes are held", held)
		}
		s.Close()
		<-served
		for _, newest := range []string{"tools999", "prompts999"} {
			want(t, newest, strings.Contains(w.Body.String(), "data: "+newest+"\n"), true)
		}
	})
}

// What waits for a client that does not listen is charged with what it is kept under.
func TestWhatWaitsForAClientToListenIsCharged(t *testing.T) {
	memory := budget.New(64 << 20)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	s := set(t, 0)
	s.account = account
	for _, key := range []string{"a", "b", "a", "c"} {
		s.Push(strings.Repeat(key, 100), []byte("text"))
	}
	want(t, "charged", memory.Used(), 2*104)
}

// TestStreamOfAnotherReplicaKeepsItsNumbers: they go on with a gap, for what was sent there
// and not kept.
func TestStreamOfAnotherReplicaKeepsItsNumbers(t *testing.T) {
	s := set(t, 3)
	number := uint64(First(1, 2)) + 7
	const base = 1 << 32
	st := s.BringBack(number, "", []sessions.Event{{Seq: 4, Data: []byte("q")}, {Seq: 9, Data: []byte("r")}}, base)
	want(t, "number", st.ID(), number)
	want(t, "of a replica", Number(number).Replica(), downstream.ReplicaID(1))
	st.Finish([]byte("last"))
	s.Retire(st, false, false)
	name := func(seq uint64) string { return fmt.Sprintf("%d-%d", number, seq) }
	all := event(name(4), "q") + event(name(9), "r") + event(name(base+1), "last")
	for seq, from := range map[uint64]uint64{0: 4, 3: 4, 4: 9, 8: 9, 9: base + 1, 77: base + 1, base: base + 1} {
		_, body := s.resumed(name(seq))
		want(t, name(seq), body, all[strings.Index(all, "event: message\nid: "+name(from)+"\n"):])
	}
	want(t, "the standalone one of another replica", s.HeardBefore(EventID{uint64(First(1, 2)), 5}), true)
	want(t, "that of this one", s.HeardBefore(EventID{uint64(First(3, 0)), 5}), false)
	next, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
	c.Leave()
	want(t, "the next call's", next.ID(), uint64(First(3, 0))+1)
}

// TestAClientThatComesBackKnowsWhereItWas: a response without an event would have it forget, and
// the next time it came back it would name nothing (E-8).
func TestAClientThatComesBackKnowsWhereItWas(t *testing.T) {
	for name, last := range map[string]uint64{"to the same replica": 0, "to another one": 1 << 32} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := set(t, 3)
				s.session.Version = mcp.V20251125
				number := uint64(First(1, 2)) + 7
				st := s.BringBack(number, "", []sessions.Event{{Seq: 4, Data: []byte("q")}}, last)
				body := make(chan string)
				go func() {
					_, text := s.resumed(fmt.Sprintf("%d-4", number))
					body <- text
				}()
				synctest.Wait()
				st.Finish(nil)
				want(t, "the response", <-body, fmt.Sprintf("id: %d-4\ndata: \n\n", number))
			})
		})
	}
}

// TestNumbersOfStreamsPassOverThoseOfOtherOpenings: a session may have many.
func TestNumbersOfStreamsPassOverThoseOfOtherOpenings(t *testing.T) {
	s := set(t, 3)
	s.last = uint64(First(3, 1)) - 1
	next, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
	c.Leave()
	want(t, "of a call", EventID{Stream: next.ID()}.OfCall(), true)
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

// owed ends a call whose client has left before its last word.
func (s *Set) owed(visitor bool) (id string) { return s.left(visitor, false) }

func (s *Set) left(visitor, kept bool) (id string) {
	st, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
	st.Append([]byte("asked"))
	c.Leave()
	st.Finish([]byte("last"))
	s.Retire(st, visitor, kept)
	return fmt.Sprintf("%d-0", st.ID())
}

// What nobody has fetched does not fall to the number of what was delivered, and no loss is silent.
func TestAnswersThatWaitToBeFetchedAreCountedApart_E20(t *testing.T) {
	var log bytes.Buffer
	s := set(t, 0)
	s.endpoint.lost = zerolog.New(&log)
	var ids []string
	for range 4 {
		ids = append(ids, s.owed(false))
		s.answered(1)
	}
	want(t, "kept", len(s.Look()), 6)
	want(t, "the log", log.String(), "")
	for _, id := range ids[1:] {
		_, body := s.resumed(id)
		want(t, "what is fetched of "+id, strings.Contains(body, "last"), true)
	}
	s.answered(1)
	want(t, "kept, when all but one were fetched", len(s.Look()), 3)
	for range 4 {
		s.owed(false)
	}
	status, _ := s.resumed(ids[0])
	want(t, "the oldest of too many", status, http.StatusBadRequest)
	want(t, "lines of the log", strings.Count(log.String(), "forgot the oldest"), 1)
}

// Nobody watches for the departure of a client that was just told something: what is written to it then would count as
// delivered.
func TestTheLastWordOfAClientThatHasLeftUnnoticedIsNotDelivered_E20(t *testing.T) {
	s := set(t, 0)
	ctx, leave := context.WithCancel(t.Context())
	st, c := s.endpoint.Begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx), s, "", nil)
	defer c.Leave()
	st.Append([]byte("asked"))
	leave()
	st.Finish([]byte("last"))
	want(t, "it counts as delivered", st.Delivered(), false)
}

// A client that left before there was anything to send may have closed only its sending half: an empty stream would look
// like an answer. One whose stream ends while it waits gets that.
func TestAResponseBeginsForNobodyWhoHasLeft_E12(t *testing.T) {
	for _, left := range []bool{false, true} {
		s, w := set(t, 0), httptest.NewRecorder()
		ctx, leave := context.WithCancel(t.Context())
		_, c := s.endpoint.Begin(w, httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx), s, "", nil)
		if left {
			leave()
		}
		want(t, "it has begun", c.Leave(), !left)
		want(t, "it has a type", w.Header().Get("Content-Type") != "", !left)
		leave()
	}
}

// The end of a call is fetched in one write, its first and last event, by a client that leaves again before that.
func TestTheLastWordOfAClientThatCameBackAndHasLeftUnnoticedIsNotDelivered_E20(t *testing.T) {
	s := set(t, 0)
	id, _ := ParseEventID(s.owed(false))
	st := s.Find(id.Stream)
	id.Seq = 1 // it has seen the first event
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	s.Resume(httptest.NewRecorder(), r, &downstream.Caller{}, id, downstream.Term{}, nil)
	want(t, "it counts as delivered", st.Delivered(), false)
	want(t, "somebody fetches it", st.Attached(), false)
	_, body := s.resumed("1-1")
	want(t, "the last word", body, event("1-2", "last"))
	want(t, "it counts as delivered then", st.Delivered(), true)
}

// What visitors leave behind pushes out nothing of the session's own.
func TestStreamsOfVisitorsGiveWayFirst_E20(t *testing.T) {
	s := set(t, 1)
	own := s.owed(false)
	for range 9 {
		s.owed(true)
	}
	want(t, "kept", len(s.Look()), 5)
	status, body := s.resumed(own)
	want(t, "the owner's answer", status, http.StatusOK)
	want(t, "its last word", strings.Contains(body, "last"), true)
}

// What a store has, too, is not lost as it is forgotten here, and pushes out nothing that is nowhere else.
func TestAnswersThatAStoreKeepsAreCountedApart_E20(t *testing.T) {
	var log bytes.Buffer
	s := set(t, 0)
	s.endpoint.lost = zerolog.New(&log)
	own := s.owed(false)
	for range 9 {
		s.left(false, true)
	}
	want(t, "kept", len(s.Look()), 5)
	want(t, "the log", log.String(), "")
	_, body := s.resumed(own)
	want(t, "what is nowhere else", strings.Contains(body, "last"), true)
}

// A call that was cancelled has no answer to be fetched: none that has is forgotten for it.
func TestCallsWithoutAnAnswerPushOutNone_E20(t *testing.T) {
	var log bytes.Buffer
	s := set(t, 0)
	s.endpoint.lost = zerolog.New(&log)
	own := s.owed(false)
	for range 9 {
		st, c := s.endpoint.Begin(httptest.NewRecorder(), nil, s, "", nil)
		st.Append([]byte("asked"))
		c.Leave()
		st.Append([]byte("progress"))
		st.Finish(nil)
		s.Retire(st, false, false)
	}
	want(t, "kept", len(s.Look()), 3)
	want(t, "the log", log.String(), "")
	_, body := s.resumed(own)
	want(t, "the answer", strings.Contains(body, "last"), true)
}

// stalled is the response of a client that took nothing for too long. Before such a write returns, it ends the
// request's context.
type stalled struct {
	*httptest.ResponseRecorder
	left func()
}

func (w stalled) Write([]byte) (int, error) {
	w.left()
	return 0, os.ErrDeadlineExceeded
}

// The handler that a failed write sends away may be gone before the stream hears of the write.
func TestASlowClientIsLoggedWhoeverNoticesFirst_E20(t *testing.T) {
	for name, handlerFirst := range map[string]bool{"the handler": true, "the stream": false} {
		var log bytes.Buffer
		s := set(t, 0)
		s.endpoint.opt.Slow = zerolog.New(&log)
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx)
		var st *sessions.Stream
		var c *Response
		returned := make(chan struct{})
		st, c = s.endpoint.Begin(stalled{httptest.NewRecorder(), func() {
			cancel()
			detached := make(chan struct{})
			go func() { // not here, where the response's lock is held
				defer close(detached)
				for handlerFirst && st.Attached() {
					runtime.Gosched()
				}
			}()
			<-detached
		}}, r, s, "", nil)
		go func() {
			defer close(returned)
			if !handlerFirst {
				<-c.wake
			}
			c.Attend(r)
			c.Leave()
		}()
		st.Append([]byte("large"))
		<-returned
		want(t, name+" is first", strings.Count(log.String(), "a client reads too slowly; its connection was let go"), 1)
	}
}
