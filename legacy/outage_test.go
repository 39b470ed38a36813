package legacy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// shaky is a store that replicas share, unless one process has it alone, and that may be away.
type shaky struct {
	store.Store
	alone   bool // one process has it
	away    atomic.Bool
	unheard atomic.Bool // the next change is made, and nobody hears of it
	leaves  bool        // it is away from then on
	says    error       // what is said of a change while it is away; nil: errAway, by which it may have been made
	hung    hung
}

func (s *shaky) Watch(func(string)) bool { return !s.alone }

var errAway = errors.New("away")

func (s *shaky) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if s.away.Load() {
		return cmp.Or(s.says, errAway)
	}
	if s.hung.is() {
		return s.hung.take(ctx, func() error { return s.Store.Commit(context.Background(), session, changes...) })
	}
	err := s.Store.Commit(ctx, session, changes...)
	if err == nil && s.unheard.Swap(false) {
		s.away.Store(s.leaves)
		return errAway
	}
	return err
}

func (s *shaky) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if s.away.Load() {
		return store.Record{}, errAway
	}
	if s.hung.is() {
		return store.Record{}, s.hung.take(ctx, nil)
	}
	return s.Store.Get(ctx, at)
}

func (s *shaky) Load(ctx context.Context, session string) ([]store.Record, error) {
	if s.away.Load() {
		return nil, errAway
	}
	if s.hung.is() {
		return nil, s.hung.take(ctx, nil)
	}
	return s.Store.Load(ctx, session)
}

func (s *shaky) End(ctx context.Context, session string) error {
	if s.away.Load() {
		return errAway
	}
	return s.Store.End(ctx, session)
}

// TestNewcomersAreNotTakenInWhileTheirSessionCannotBeShared: the other replicas would tell
// them that it does not exist.
func TestNewcomersAreNotTakenInWhileTheirSessionCannotBeShared(t *testing.T) {
	opt := stored()
	s := &shaky{Store: opt.Store}
	opt.Store = s
	h, p := serve(t, opt, newFake())
	s.away.Store(true)
	resp := p.post(initialize("2025-11-25"))
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%s, %v", resp.Status, resp.Header)
	}
	want(t, "sessions", h.Sessions(), 0)
	s.away.Store(false)
	want(t, "when it is back", p.initialize("2025-11-25").StatusCode, 200)
}

// TestSessionsEndEverywhereOrNotYet: a DELETE that only one replica heard of is none, nor is one that the next process would not know of.
func TestSessionsEndEverywhereOrNotYet(t *testing.T) {
	for _, alone := range []bool{false, true} {
		opt := stored()
		s := &shaky{Store: opt.Store, alone: alone}
		opt.Store = s
		_, p := serve(t, opt, newFake())
		p.initialize("2025-11-25")
		s.away.Store(true)
		want(t, "DELETE while the store is away", p.do(p.request(http.MethodDelete, "")).StatusCode, 503)
		want(t, "a call", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		s.away.Store(false)
		want(t, "DELETE", p.do(p.request(http.MethodDelete, "")).StatusCode, 204)
		want(t, "a call afterwards", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 404)
	}
}

// TestCancellationsAreNotTakenInVain: while nobody can say where the call is.
func TestCancellationsAreNotTakenInVain(t *testing.T) {
	opt := stored()
	s, others := &shaky{Store: opt.Store}, &cutOff{}
	opt.Store, opt.Peers = s, others
	b := newFake()
	_, p := serve(t, opt, b)
	p.initialize("2025-11-25")
	b.last().stranger = true
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`
	s.away.Store(true)
	want(t, "while the store is away", p.status(cancel), 503)
	s.away.Store(false)
	want(t, "when it is back", p.status(cancel), 202)
	others.silent = true
	want(t, "while a replica cannot be asked", p.status(cancel), 503)
}

// cutOff is a replica that cannot be asked at times.
type cutOff struct {
	nobody
	silent bool
}

func (c *cutOff) ForwardAny(http.ResponseWriter, *http.Request, []byte) (served, known bool) {
	return false, !c.silent
}

// another is a replica that takes what is handed on.
type another struct{ nobody }

func (another) Alone(context.Context) bool { return false }

func (another) HandOnAny(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
	w.WriteHeader(http.StatusAccepted)
	return true
}

// TestWhoStopsSaysWhereItCannotServe: a replica that stops and cannot bring a session back any
// more tells the replica that passed a request on to look elsewhere, and has another
// serve its own clients.
func TestWhoStopsSaysWhereItCannotServe(t *testing.T) {
	opt := stored()
	s := &shaky{Store: opt.Store}
	opt.Store, opt.Peers = s, another{}
	h, p := serve(t, opt, newFake())
	s.away.Store(true)
	h.gate.Shut()
	status := func(method, body string, mark func(*http.Request) *http.Request) int {
		r := p.request(method, body)
		r.Header.Set("Mcp-Session-Id", "of-another")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, mark(r))
		return w.Code
	}
	own := func(r *http.Request) *http.Request { return r }
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
	for method, body := range map[string]string{http.MethodPost: call, http.MethodGet: "", http.MethodDelete: ""} {
		want(t, method+" that was forwarded", status(method, body, Forwarded), http.StatusMisdirectedRequest)
		want(t, method+" that was handed on", status(method, body, HandedOn), http.StatusMisdirectedRequest)
		want(t, method+" of a client", status(method, body, own), http.StatusAccepted)
	}
}

// What a replica that stops hands on to another is charged while it does: a flood of long requests
// is no way around what one client may hold.
func TestWhatIsHandedOnInAShutdownIsCharged(t *testing.T) {
	opt, memory := stored(), budget.New(10*tenth)
	opt.Memory, opt.Peers = memory, another{}
	h, p := serve(t, opt, newFake())
	h.gate.Shut()
	status := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, p.request(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":"`+strings.Repeat("x", 2*tenth)+`"}}`))
		return w.Code
	}
	want(t, "a long request", status(), http.StatusAccepted)
	memory.Guest("somebody").Charge(8 * tenth)
	want(t, "one for which there is no memory", status(), http.StatusServiceUnavailable)
	want(t, "what is charged afterwards", memory.Used(), int64(8*tenth))
}

// TestCancellationsHoldWhenTheStoreIsBack: of a call that the store still has nobody is told that it is cancelled. When it
// can be removed it is, though its client asks no more: whoever answered it later would have it done.
func TestCancellationsHoldWhenTheStoreIsBack(t *testing.T) {
	for _, wait := range []time.Duration{0, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			opt := stored()
			s := &shaky{Store: opt.Store}
			opt.Store, opt.StoreWait = s, wait
			b := newFake()
			_, p := servePipe(t, opt, b)
			p.initialize(mcp.V20250618)
			answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
			c := <-b.held
			want(t, "a question", c.ask(time.Hour, nil), nil)
			b.last().cancels = c
			s.away.Store(true)
			const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`
			want(t, "cancelled while the store is away", p.status(cancel), http.StatusServiceUnavailable)
			<-answer
			time.Sleep(10 * time.Minute)
			s.away.Store(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			page, err := s.List(t.Context(), "", 100)
			if err != nil || len(page.Records) != 1 || page.Records[0].Kind != store.Session {
				t.Errorf("the store has %v, %v", page.Records, err)
			}
			want(t, "cancelled when it is back", p.status(cancel), http.StatusAccepted)
		})
	}
}

// TestAChangeThatWasMadeUnheardIsNoChangeOfAnother: the session would go back to it from what it has become since.
func TestAChangeThatWasMadeUnheardIsNoChangeOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		s := &shaky{Store: opt.Store}
		opt.Store = s
		b := newFake()
		h, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		conv := b.last()
		s.unheard.Store(true)
		conv.setLevel("debug")
		conv.setLevel("error")
		want(t, "its level", conv.level, "error")
		h.Close()
		b = newFake()
		_, p = p.another(opt, b)
		want(t, "a call", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), http.StatusOK)
		want(t, "its level in another process", b.last().level, "error")
	})
}

// TestARemovalThatWasMadeUnheardIsNoOtherReplicas: of a call whose last word has no room in the store. It is tried again once that is back,
// finds no record, and the answer, which is in memory, stays.
func TestARemovalThatWasMadeUnheardIsNoOtherReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		alone bool
		wait  time.Duration
	}{"shared": {}, "shared, and waited for": {wait: time.Minute}, "alone": {alone: true}, "alone, and waited for": {true, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				s := &shaky{Store: opt.Store, alone: c.alone, leaves: true}
				opt.Store, opt.StoreRoom, opt.StoreWait, opt.Retention = s, budget.NewRoom(8<<10), c.wait, time.Hour
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20251125)
				k := p.lost(b, false)
				question := fmt.Sprintf("%d-2", k.Address().Stream)
				want(t, "a question", k.ask(time.Hour, nil), nil)
				s.unheard.Store(true)
				k.finish(`"` + strings.Repeat("r", 64<<10) + `"`)
				want(t, "the store is away", s.away.Swap(false), true)
				time.Sleep(time.Minute)
				resp := p.get(question)
				if said := text(t, resp); resp.StatusCode != http.StatusOK || !strings.Contains(said, "rrr") {
					t.Errorf("the answer: %d %.200s", resp.StatusCode, said)
				}
			})
		})
	}
}

// TestARemovalByAnotherReplicaCounts: it ended a call whose last word the store did not take here, and says in the place of its record that
// there is nothing to say.
func TestARemovalByAnotherReplicaCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		s := &shaky{Store: opt.Store, says: store.ErrUnreachable}
		opt.Store, opt.Retention = s, time.Hour
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		k := p.lost(b, false)
		question := fmt.Sprintf("%d-2", k.Address().Stream)
		want(t, "a question", k.ask(time.Hour, nil), nil)
		s.unheard.Store(true)
		s.leaves = true
		k.finish(`"r"`)
		want(t, "the store is away", s.away.Load(), true)
		page, err := s.List(t.Context(), "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.Kind == store.Flow {
				nothing := fmt.Appendf(nil, `{"v":2,"stream":%s,"over":true}`+"\n", r.ID)
				want(t, "its removal", s.Store.Commit(t.Context(), r.Session, store.Change{Kind: r.Kind, ID: r.ID, Replaces: store.Any, TTL: time.Hour, Value: nothing}), nil)
			}
		}
		s.away.Store(false)
		time.Sleep(time.Minute)
		want(t, "the answer", p.get(question).StatusCode, http.StatusBadRequest)
	})
}

// TestWhatIsToBeMadeSureOfIsLeftToNobodyWhileTheStoreIsAway, unlike an answer: its client would give that again.
func TestWhatIsToBeMadeSureOfIsLeftToNobodyWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		s := &shaky{Store: opt.Store}
		opt.Store, opt.Replica, opt.Peers = s, homeID, dead{}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		k := <-b.held
		want(t, "a question", k.asksLarge(1, false), nil)
		_ = (<-answer).Body.Close()
		s.away.Store(true)
		again := downstream.Checkpoint{Request: k.req.ID, N: 2, Record: []byte(`{}`), TTL: time.Hour, Again: true}
		if err := k.Checkpointer().Save(again); err == nil || errors.Is(err, downstream.ErrGone) {
			t.Errorf("while the store is away: %v", err)
		}
		s.away.Store(false)
		again.N = 3
		want(t, "once it is back", k.Checkpointer().Save(again), nil)
	})
}

// partial is a store of which a part hangs: that with one session, as a node of a cluster does.
type partial struct {
	store.Store
	hangs atomic.Pointer[string] // that session's name
	fails atomic.Bool            // the rest does
}

func (s *partial) Watch(func(string)) bool { return true }

func (s *partial) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if hangs := s.hangs.Load(); hangs != nil && *hangs == session {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.fails.Load() {
		return errAway
	}
	return s.Store.Commit(ctx, session, changes...)
}

// TestAPartOfAStoreThatHangsHoldsUpNoOthers: ends of calls that another part can take do not wait behind its own.
func TestAPartOfAStoreThatHangsHoldsUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		s := &partial{Store: opt.Store}
		opt.Store = s
		_, p := servePipe(t, opt, b)
		q := *p
		asked := func(p *peer, id int) *call {
			answer := p.async(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hold"}`, id))
			c := <-b.held
			want(t, "a question", c.ask(time.Hour, nil), nil)
			go func() { text(t, <-answer) }()
			return c
		}
		p.initialize(mcp.V20250618)
		q.initialize(mcp.V20250618)
		good := asked(&q, 1)
		var hung []*call
		for i := range 100 {
			hung = append(hung, asked(p, i))
		}
		name := store.Name("/mcp\n" + p.session)
		s.hangs.Store(&name)
		for _, c := range hung {
			go c.finish(`{}`)
		}
		time.Sleep(20 * time.Second) // the store has not taken their ends
		s.fails.Store(true)
		good.finish(`{}`)
		s.fails.Store(false)
		time.Sleep(2 * time.Second)
		left, err := s.Load(t.Context(), store.Name("/mcp\n"+q.session))
		if err != nil || len(left) != 1 {
			t.Errorf("the store has %v, %v", left, err)
		}
		s.hangs.Store(nil)
		time.Sleep(time.Minute)
		left, err = s.Load(t.Context(), name)
		if err != nil || len(left) != 1 {
			t.Errorf("once all of it is well it has %d records, %v", len(left), err)
		}
	})
}

// TestWhatAStoreRefusedTakesNoRoomThereOnceItIsBack, also of calls that nobody tries to remove, since too many wait for that already.
func TestWhatAStoreRefusedTakesNoRoomThereOnceItIsBack(t *testing.T) {
	for name, many := range map[string]int{"as many as are tried": 1000, "more": 3000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, room := stored(), budget.NewRoom(1<<30)
				s := &shaky{Store: opt.Store, alone: true}
				opt.Store, opt.Memory, opt.StoreRoom = s, budget.New(1<<30), room
				b := newFake()
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				empty := room.Used()
				s.away.Store(true) // a full disk, say
				for i := range many {
					answer := p.async(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hold"}`, 1+i))
					c := <-b.held
					want(t, "a question", c.ask(time.Hour, nil), errAway)
					c.finish(`{}`)
					text(t, <-answer)
				}
				want(t, "they may be made late", room.Used() > empty+int64(many)*100, true)
				s.away.Store(false)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				want(t, "what counts in the store", room.Used(), empty)
			})
		})
	}
}

// TestCallsThatAStoreDoesNotTakeDoNotPileUp: a disk that is full refuses the question of every call, and then its end; what tries again
// are a few goroutines, and of what nobody was asked they try so many. When there is room again what was asked is removed.
func TestCallsThatAStoreDoesNotTakeDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, memory := stored(), budget.New(1<<30)
		s := &shaky{Store: opt.Store, alone: true}
		opt.Store, opt.Memory = s, memory
		b := newFake()
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		call := func(id int, fails error) {
			answer := p.async(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hold"}`, id))
			c := <-b.held
			want(t, "a question", c.ask(time.Hour, nil), fails)
			s.away.Store(true)
			c.finish(`{}`)
			text(t, <-answer)
		}
		call(0, nil)
		synctest.Wait()
		before, used := runtime.NumGoroutine(), memory.Used()
		const many = 3000
		for i := range many {
			call(1+i, errAway)
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 50 {
			t.Errorf("%d goroutines more", more)
		}
		if more := memory.Used() - used; more < 1<<20 || more > 4<<20 {
			t.Errorf("they hold %d bytes", more)
		}
		s.away.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		page, err := s.List(t.Context(), "", 100)
		if err != nil || len(page.Records) != 1 || page.Records[0].Kind != store.Session {
			t.Errorf("the store has %v, %v", page.Records, err)
		}
	})
}
