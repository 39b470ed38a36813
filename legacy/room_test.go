package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// roomy is a call of a client from some address that is in the store alone, with what that takes there.
type roomy struct {
	t     *testing.T
	h     *HTTP
	b     *fakeBackend
	p     *peer
	room  *budget.Room
	began time.Time
	own   int64  // what the session takes
	last  string // event that the client has seen of the call
	from  string // the client's address
}

// callIsDue is when something is due to the call, and callLasts how long its record does.
const (
	callIsDue = 5 * time.Minute
	callLasts = time.Hour
)

// leftInARoom has a client leave a call to the store, and its session, too, unless that stays. adapt changes options.
func leftInARoom(t *testing.T, stays bool, adapt func(f *roomy, opt *Options)) *roomy {
	t.Helper()
	opt := stored()
	f := &roomy{t: t, b: newFake(), room: budget.NewRoom(1 << 30), began: time.Now(), from: "192.0.2.1:1"}
	opt.StoreRoom, opt.Memory, opt.Replica, opt.Peers = f.room, budget.New(1<<30), homeID, dead{}
	opt.Unload, opt.MaxUnloaded, opt.IdleTimeout = time.Second, 100, 10*time.Minute
	opt.Store = alone{opt.Store, false}
	f.b.due = func([]byte) (time.Time, error) { return f.began.Add(callIsDue), nil }
	f.b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
		out.Finish(downstream.Result(`"call"`, nil))
		return nil
	}
	if adapt != nil {
		adapt(f, &opt)
	}
	f.h = NewHTTP(opt, f.b)
	f.p = pipeTo(t, f.h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = f.from
		f.h.ServeHTTP(w, r)
	}))
	f.p.initialize(mcp.V20251125)
	f.own = f.room.Used()
	answer := f.p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	k := <-f.b.held
	want(t, "a question", k.asksLarge(1, false), nil)
	<-answer
	f.last = fmt.Sprintf("%d-1", k.Address().Stream)
	k.Checkpointer().(interface{ Shelve(time.Time) }).Shelve(f.began.Add(callIsDue + time.Minute))
	k.Checkpointer().Leave()
	want(t, "the call is counted", f.room.Used() > f.own+flowSize, true)
	if !stays {
		f.b.last().rests.Store(true)
		time.Sleep(5 * time.Second)
		want(t, "sessions in memory", f.h.Sessions(), 0)
		f.h.sessions.Astray() // as after a failure: nothing is noted of the call
	}
	return f
}

// wantCalls looks how much is counted besides the session.
func (f *roomy) wantCalls(what string, ok func(bytes int64) bool) {
	f.t.Helper()
	synctest.Wait()
	if used := f.room.Used() - f.own; !ok(used) {
		f.t.Errorf("%s: %d bytes are counted for calls", what, used)
	}
}

func (f *roomy) status(method, body string) int {
	f.t.Helper()
	return f.p.do(f.p.request(method, body)).StatusCode
}

func (f *roomy) delete() {
	f.t.Helper()
	want(f.t, "DELETE", f.status(http.MethodDelete, ""), http.StatusNoContent)
	synctest.Wait()
	want(f.t, "calls that the server is told of", len(f.b.last().givenUp), 1)
	f.own = 0
}

func none(bytes int64) bool { return bytes == 0 }
func some(bytes int64) bool { return bytes > 0 && bytes < flowSize }
func all(bytes int64) bool  { return bytes > flowSize }

// TestACallThatLeftMemoryCountsUntilItEnds, however that comes about, and whoever it is that has its session come back. Its record would
// last for longer.
func TestACallThatLeftMemoryCountsUntilItEnds(t *testing.T) {
	for why, tt := range map[string]struct {
		stays bool
		adapt func(*roomy, *Options)
		ends  func(*roomy)
		rest  bool // its last word is counted until its retention ends
	}{
		"the clock brings it back": {ends: func(f *roomy) { time.Sleep(callIsDue) }, rest: true},
		"its client is elsewhere": {rest: true, ends: func(f *roomy) {
			f.from = "192.0.2.2:1"
			want(f.t, "GET", f.p.get(f.last).StatusCode, http.StatusOK)
		}},
		"its session ends":                         {stays: true, ends: (*roomy).delete},
		"its session ends, which left memory, too": {ends: (*roomy).delete},
		"its session expires": {stays: true, adapt: func(f *roomy, _ *Options) {
			f.b.due = func([]byte) (time.Time, error) { return f.began.Add(callLasts / 2), nil }
		}, ends: func(f *roomy) {
			time.Sleep(callLasts / 3)
			f.own = 0
		}},
		"its session ends elsewhere": {ends: func(f *roomy) {
			f.from = "192.0.2.2:1"
			f.delete()
		}},
		"its session ends, of replicas": {
			adapt: func(_ *roomy, opt *Options) { opt.Store = opt.Store.(alone).Store },
			ends:  (*roomy).delete,
		},
		"its session's server has become another one": {adapt: func(f *roomy, _ *Options) {
			f.b.restore = func([]byte) error { return downstream.ErrForeignEra }
		}, ends: func(f *roomy) {
			want(f.t, "a request", f.status(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"echo"}`), 404)
			f.own = 0
		}},
		"it cannot come back": {rest: true, adapt: func(f *roomy, opt *Options) {
			f.b.restore = func([]byte) error { return errors.New("its server is away") }
			f.b.due = func([]byte) (time.Time, error) { return f.began.Add(callLasts - 3*time.Minute), nil }
		}, ends: func(f *roomy) { time.Sleep(callLasts - time.Since(f.began) + time.Minute) }},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := leftInARoom(t, tt.stays, tt.adapt)
				f.wantCalls("before", all)
				tt.ends(f)
				if !tt.rest {
					f.wantCalls("at its end", none)
					return
				}
				f.wantCalls("its last word", some)
			})
		})
	}
}

// shakyRoom is a client's session in a store that may be away, and the room that is counted for it there.
func shakyRoom(t *testing.T) (*shaky, *budget.Room, *fakeBackend, *peer) {
	t.Helper()
	room := budget.NewRoom(1 << 30)
	opt, b := stored(), newFake()
	s := &shaky{Store: opt.Store}
	opt.Store, opt.StoreRoom, opt.Replica, opt.Peers, opt.StoreWait = s, room, homeID, dead{}, time.Hour
	_, p := servePipe(t, opt, b)
	p.initialize(mcp.V20251125)
	return s, room, b, p
}

// TestWhatTheStoreRemovesLateCountsUntilThen: the call ended while it was away.
func TestWhatTheStoreRemovesLateCountsUntilThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, room, b, p := shakyRoom(t)
		own := room.Used()
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		k := <-b.held
		want(t, "a question", k.asksLarge(1, false), nil)
		<-answer
		s.away.Store(true)
		k.finish(`{}`)
		time.Sleep(time.Minute)
		want(t, "it counts", room.Used() > own+flowSize, true)
		s.away.Store(false)
		time.Sleep(time.Minute)
		want(t, "it does not any more", room.Used(), own)
	})
}

// TestAnAnswerThatIsTakenBackDoesNotCount: the call is what it was.
func TestAnAnswerThatIsTakenBackDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, room, b, p := shakyRoom(t)
		k := p.asked(b)
		asked := room.Used()
		s.hung.begin()
		want(t, "a large answer that the store does not take", k.Checkpointer().Save(downstream.Checkpoint{
			Request: `"call"`, N: 2, Record: []byte(`{"x":"` + strings.Repeat("x", flowSize) + `"}`), TTL: time.Hour,
		}), downstream.ErrGone)
		s.hung.end()
		k.Checkpointer().Leave()
		time.Sleep(time.Minute)
		want(t, "what is counted", room.Used(), asked)
	})
}

// TestACallForWhichTheStoreWasAwayIsFoundWhereItCounts: it lasts from when it was taken.
func TestACallForWhichTheStoreWasAwayIsFoundWhereItCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, room, b, p := shakyRoom(t)
		own := room.Used()
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		k := <-b.held
		b.last().resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		s.away.Store(true)
		time.AfterFunc(5*time.Minute, func() { s.away.Store(false) })
		want(t, "a question", k.asksLarge(1, false), nil)
		<-answer
		last := fmt.Sprintf("%d-1", k.Address().Stream)
		k.Checkpointer().Leave()
		want(t, "GET", p.get(last).StatusCode, http.StatusOK)
		synctest.Wait()
		want(t, "what is counted but for its last word", (room.Used()-own)/flowSize, int64(0))
	})
}

// overtaken is a store in which something comes before a change that was under way.
type overtaken struct {
	store.Store
	before func()
}

func (s *overtaken) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.Commit(ctx, session, changes...)
}

// TestACallWhoseSessionWasEndedTakesNoRoom: that came while its answer was on its way to the store, and nobody goes on with it.
func TestACallWhoseSessionWasEndedTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room, opt, b := budget.NewRoom(1<<30), stored(), newFake()
		s := &overtaken{Store: opt.Store}
		opt.Store, opt.StoreRoom = s, room
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		own := room.Used()
		k := p.asked(b)
		want(t, "room for a large answer", k.Checkpointer().Grow(flowSize), nil)
		s.before = func() { want(t, "the end", s.End(t.Context(), store.Name("/mcp\n"+p.session)), nil) }
		want(t, "the answer", k.Checkpointer().Save(downstream.Checkpoint{Request: `"call"`, N: 2, Record: []byte(`{}`), TTL: time.Hour}), downstream.ErrGone)
		k.Checkpointer().Leave()
		want(t, "what counts besides the session", room.Used(), own)
	})
}
