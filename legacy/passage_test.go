package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions/store"
)

// flowSize is how large the calls of these tests are.
const flowSize = 100 << 10

// reading is a store that can tell how large its records are, and notes how it is read.
type reading struct {
	store.Store
	mu          sync.Mutex
	takes       time.Duration // by the read of a call
	reads       int           // of calls
	now, atOnce int
}

func (r *reading) Size(ctx context.Context, at store.Address) (int, error) {
	record, err := r.Store.Get(ctx, at)
	return len(record.Value), err
}

func (r *reading) Glance(ctx context.Context, session string) ([]store.Record, error) {
	return r.Store.Load(ctx, session)
}

func (r *reading) Load(context.Context, string) ([]store.Record, error) { panic("all at once") }

func (r *reading) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if at.Kind == store.Flow {
		r.begin()
		defer r.end()
	}
	return r.Store.Get(ctx, at)
}

func (r *reading) begin() {
	r.mu.Lock()
	r.reads++
	r.now++
	r.atOnce = max(r.atOnce, r.now)
	takes := r.takes
	r.mu.Unlock()
	time.Sleep(takes)
}

func (r *reading) end() {
	r.mu.Lock()
	r.now--
	r.mu.Unlock()
}

func (r *reading) said() (reads, atOnce int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads, r.atOnce
}

// asksLarge makes a large call of a session of its own, which is kept with its question, and dies.
func asksLarge(t *testing.T, opt Options) *peer {
	t.Helper()
	p, _ := waitsLarge(t, opt)
	return p
}

// waitsLarge is asksLarge without dying.
func waitsLarge(t *testing.T, opt Options) (*peer, *call) {
	t.Helper()
	b := newFake()
	_, p := servePipe(t, opt, b)
	p.initialize(mcp.V20251125)
	answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	k := <-b.held
	want(t, "a question", k.asksLarge(1, false), nil)
	<-answer
	return p, k
}

func (c *call) asksLarge(n uint64, owed bool) error {
	question := downstream.Question(`"q"`, "elicitation/create", []byte(`{}`))
	return c.Checkpointer().Save(downstream.Checkpoint{
		Request: c.req.ID, N: n, Record: []byte(`{"x":"` + strings.Repeat("x", flowSize) + `"}`), Open: []jsonrpc.ID{`"q"`}, Message: &question, TTL: time.Hour, Owed: owed,
	})
}

// next is a process after the others, where their calls come back.
func next(opt Options, memory *budget.Budget) (Options, *fakeBackend) {
	b := newFake()
	b.resumes = func(downstream.Caller, []byte, downstream.Reply) error { return nil }
	opt.Replica, opt.Memory, opt.Peers = neighbourID, memory, dead{}
	return opt, b
}

// goOn has the client's session come back here, which knows nothing of its call.
func (p *peer) goOn(b *fakeBackend, session string) {
	p.t.Helper()
	p.session, p.version = session, string(mcp.V20251125)
	want(p.t, "a request", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
	conv := b.last()
	conv.mu.Lock()
	conv.leaving = 1
	conv.mu.Unlock()
}

// TestACallIsChargedBeforeItComesBack: several times its size, and who holds too much for that is told to come again.
func TestACallIsChargedBeforeItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		opt.Replica = homeID
		p := asksLarge(t, opt)
		memory := budget.New(20 * flowSize)
		r := &reading{Store: opt.Store}
		opt.Store = r
		opt, b := next(opt, memory)
		h, q := servePipe(t, opt, b)
		q.goOn(b, p.session)
		greedy := q.live(h).Account()
		greedy.Charge(8 * flowSize)
		resp := q.post(answerQ)
		want(t, "an answer to a call for which there is no memory", resp.StatusCode, http.StatusTooManyRequests)
		want(t, "again after", resp.Header.Get("Retry-After"), "1")
		if reads, _ := r.said(); reads > 0 {
			t.Errorf("%d calls were read", reads)
		}
		greedy.Give(8 * flowSize)
		q.goOn(b, p.session)
		q.bringsBack(memory, "when there is")
	})
}

// bringsBack answers a large call that is in the store, which is charged for what it keeps from then on.
func (p *peer) bringsBack(memory *budget.Budget, what string) {
	p.t.Helper()
	before := memory.Used()
	want(p.t, what, p.status(answerQ), http.StatusAccepted)
	if held := memory.Used() - before; held < flowSize || held > 3*flowSize {
		p.t.Errorf("a call that has come back is charged %d bytes", held)
	}
}

// TestLargeCallsComeBackInTurn: clients that come back together do not have all of their calls read at once.
func TestLargeCallsComeBackInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		opt.Replica = homeID
		var clients []*peer
		for range 8 {
			clients = append(clients, asksLarge(t, opt))
		}
		r := &reading{Store: opt.Store, takes: time.Second}
		opt.Store = r
		opt, b := next(opt, budget.New(1000*flowSize))
		_, first := servePipe(t, opt, b)
		var answers []<-chan *http.Response
		for _, p := range clients {
			q := *first
			q.goOn(b, p.session)
			answers = append(answers, q.async(answerQ))
		}
		for i, answer := range answers {
			want(t, fmt.Sprint("answer ", i), (<-answer).StatusCode, http.StatusAccepted)
		}
		if reads, atOnce := r.said(); reads < len(clients) || atOnce > 5 { // one of them by who looks for strays
			t.Errorf("%d calls were read, %d at once", reads, atOnce)
		}
	})
}

// TestWhoHoldsLittleComesBackWhileAnotherHoldsMost: a small call is charged little, and waits for nobody.
func TestWhoHoldsLittleComesBackWhileAnotherHoldsMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica = homeID
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		p.asked(b)
		memory := budget.New(64 << 20)
		opt, b = next(opt, memory)
		_, q := servePipe(t, opt, b)
		q.goOn(b, p.session)
		greedy, err := memory.Open("192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		for greedy.Take(1<<20) == nil {
		}
		want(t, "an answer of another's", q.status(answerQ), http.StatusAccepted)
	})
}

// TestALaterQuestionIsAskedWhateverThereIs: the answer to the one before was acknowledged.
func TestALaterQuestionIsAskedWhateverThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Memory = homeID, budget.New(20*flowSize)
		h, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		k := <-b.held
		greedy := p.live(h).Account()
		greedy.Charge(19 * flowSize)
		if err := k.asksLarge(1, false); !budget.Short(err) {
			t.Errorf("a first question: %v", err)
		}
		want(t, "a later one", k.asksLarge(2, true), nil)
		greedy.Give(19 * flowSize)
		k.finish(`{}`)
		<-answer
	})
}

// TestASessionEndsWithoutReadingItsCallsTogether: those that are not here are looked at one after the other.
func TestASessionEndsWithoutReadingItsCallsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		opt.Replica = homeID
		p := asksLarge(t, opt)
		opt.Store = &reading{Store: opt.Store}
		opt, b := next(opt, nil)
		_, q := servePipe(t, opt, b)
		q.session, q.version = p.session, p.version
		want(t, "DELETE", q.do(q.request(http.MethodDelete, "")).StatusCode, 204) // Load panics
		want(t, "given up", len(b.last().givenUp), 1)
	})
}

// TestWhoHasHadNoTurnIsToldToComeAgain: memory is not short, nor need it be bounded.
func TestWhoHasHadNoTurnIsToldToComeAgain(t *testing.T) {
	for name, memory := range map[string]*budget.Budget{"bounded": budget.New(10000 * flowSize), "unbounded": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := stored()
				opt.Replica = homeID
				var clients []*peer
				for range 16 {
					clients = append(clients, asksLarge(t, opt))
				}
				opt.Store = &reading{Store: opt.Store, takes: 4 * time.Second}
				opt, b := next(opt, memory)
				refused := &refusing{}
				opt.Watch = refused
				_, first := servePipe(t, opt, b)
				var answers []<-chan *http.Response
				for _, p := range clients {
					q := *first
					q.goOn(b, p.session)
					answers = append(answers, q.async(answerQ))
				}
				later := 0
				for i, answer := range answers {
					resp := <-answer
					if resp == nil {
						t.Errorf("answer %d was answered with nothing", i)
						continue
					}
					if resp.StatusCode == http.StatusAccepted {
						continue
					}
					later++
					want(t, "one that had no turn", resp.StatusCode, http.StatusServiceUnavailable)
					want(t, "again after", resp.Header.Get("Retry-After"), "1")
					if why := text(t, resp); strings.Contains(why, "limits.memory") {
						t.Errorf("memory is not short: %s", why)
					}
				}
				if later == 0 || later == len(clients) {
					t.Errorf("%d of %d had no turn", later, len(clients))
				}
				want(t, "refused for want of memory", refused.of(observe.ShortOfMemory), 0)
			})
		})
	}
}

// polled is a call in the store with a large question, whose client polls for it.
type polled struct {
	session string
	stream  uint64
}

// asksAtLength is a process whose client is asked a large question, and polls.
func asksAtLength(t *testing.T, opt Options) polled {
	t.Helper()
	b := newFake()
	opt.Replica, opt.Poll, opt.Unload, opt.MaxUnloaded = homeID, time.Second, time.Hour, 100
	_, p := servePipe(t, opt, b)
	p.initialize(mcp.V20251125)
	answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	k := <-b.held
	question := downstream.Question(`"q"`, "elicitation/create", []byte(`{"message":"`+strings.Repeat("x", flowSize)+`"}`))
	want(t, "a question", k.Checkpointer().Save(downstream.Checkpoint{
		Request: k.req.ID, N: 1, Record: []byte(`{}`), Open: []jsonrpc.ID{`"q"`}, Message: &question, TTL: time.Hour,
	}), nil)
	<-answer
	return polled{p.session, k.Address().Stream}
}

// pollsSlowly asks for a call and reads nothing.
func (p *peer) pollsSlowly(of polled) {
	p.t.Helper()
	conn, err := p.client.Transport.(*http.Transport).DialContext(p.t.Context(), "tcp", "localhost")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: %s\r\nLast-Event-ID: %d-1\r\n\r\n", of.session, p.version, of.stream)
}

// TestSlowPollersKeepNoTurns: of clients that poll for large questions and read nothing.
func TestSlowPollersKeepNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, memory := stored(), budget.New(10000*flowSize)
		var all []polled
		for range 5 {
			all = append(all, asksAtLength(t, opt))
		}
		opt, b := next(opt, memory)
		opt.Replica, opt.Poll, opt.Unload, opt.MaxUnloaded = homeID, time.Second, time.Hour, 100
		_, q := servePipe(t, opt, b)
		for _, k := range all {
			q.goOn(b, k.session)
		}
		synctest.Wait()
		before := memory.Used()
		for _, k := range all[:4] {
			q.pollsSlowly(k)
		}
		synctest.Wait()
		if held := memory.Used() - before; held < 4*2*flowSize || held >= 4*3*flowSize {
			t.Errorf("what is being written is charged %d bytes", held)
		}
		answer := q.async(answerQ)
		synctest.Wait()
		select {
		case resp := <-answer:
			want(t, "another one's answer", resp.StatusCode, http.StatusAccepted)
		default:
			t.Error("another one's answer waits for clients that read nothing")
			<-answer
		}
	})
}

// TestALargeCallIsReadOnceForWhoPolls, and again when its record has changed, or somebody else asks.
func TestALargeCallIsReadOnceForWhoPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Poll, opt.Unload, opt.MaxUnloaded = homeID, time.Second, time.Hour, 100
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		k := <-b.held
		want(t, "a question", k.asksLarge(1, false), nil)
		<-answer
		of := fmt.Sprint(k.Address().Stream)
		shared, r := opt.Store, &reading{Store: opt.Store}
		opt.Store = r
		opt, b = next(opt, nil)
		opt.Replica = homeID
		_, q := servePipe(t, opt, b)
		q.goOn(b, p.session)
		before, _ := r.said()
		poll := func(last string) string { return text(t, q.get(of+"-"+last)) }
		want(t, "the question", strings.Contains(poll("1"), "elicitation/create"), true)
		for range 3 {
			want(t, "no news", poll("2"), "id: "+of+"-2\ndata: \n\nretry: 500\n\n")
		}
		reads, _ := r.said()
		want(t, "reads", reads-before, 1)
		want(t, "the question, which was lost", strings.Contains(poll("1"), "elicitation/create"), true)
		reads, _ = r.said()
		want(t, "reads for that", reads-before, 2)
		list, err := shared.Load(t.Context(), store.Name("/mcp\n"+p.session))
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if at := list[i].Address; at.Kind == store.Flow {
				want(t, "a change", shared.Commit(t.Context(), at.Session, store.Change{Kind: at.Kind, ID: at.ID, Replaces: store.Any, TTL: time.Hour, Value: list[i].Value}), nil)
			}
		}
		for range 3 {
			want(t, "no news", poll("2"), "id: "+of+"-2\ndata: \n\nretry: 500\n\n")
		}
		reads, _ = r.said()
		want(t, "reads after a change", reads-before, 3)
	})
}

// TestLargeCallsAreInTimeThoughTheirServerIsSlow: many are due together, and it takes ten seconds to bring a session back. No
// turn is held meanwhile.
func TestLargeCallsAreInTimeThoughTheirServerIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, due = 60, 30 * time.Minute
		opt := stored()
		opt.Replica = homeID
		for range sessions {
			asksLarge(t, opt)
		}
		b := newFake()
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		asked := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		question := downstream.Question(`"q"`, "elicitation/create", []byte(`{}`))
		want(t, "a question", (<-b.held).Checkpointer().Save(downstream.Checkpoint{
			Request: `"call"`, N: 1, Record: []byte(`{"later":"` + strings.Repeat("x", flowSize) + `"}`), Open: []jsonrpc.ID{`"q"`}, Message: &question, TTL: time.Hour,
		}), nil)
		<-asked
		opt, b = next(opt, budget.New(1<<30))
		began := time.Now()
		b.due = func(flow []byte) (time.Time, error) {
			if strings.Contains(string(flow), "later") {
				return began.Add(2 * due), nil
			}
			return began.Add(due), nil
		}
		b.restore = func([]byte) error { time.Sleep(10 * time.Second); return nil }
		var back atomic.Int64
		b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			back.Add(1)
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		_, q := servePipe(t, opt, b)
		time.Sleep(due - time.Minute)
		q.goOn(b, p.session)
		time.Sleep(time.Until(began.Add(due + 5*time.Second))) // sessions are coming back
		answer := q.async(answerQ)
		synctest.Wait()
		select {
		case resp := <-answer:
			want(t, "an answer meanwhile", resp.StatusCode, http.StatusAccepted)
		default:
			t.Error("an answer waits for sessions that come back")
			<-answer
		}
		time.Sleep(time.Minute)
		want(t, "calls that came back in time", back.Load(), sessions+1) // and the one that was answered
	})
}

// asksBeside keeps a call of the session with its question, and returns the id of that event.
func (p *peer) asksBeside(b *fakeBackend, call, question string, size int) (last string) {
	p.t.Helper()
	answer := p.async(`{"jsonrpc":"2.0","id":"` + call + `","method":"hold"}`)
	k := <-b.held
	q := downstream.Question(jsonrpc.ID(`"`+question+`"`), "elicitation/create", []byte(`{}`))
	want(p.t, "a question", k.Checkpointer().Save(downstream.Checkpoint{
		Request: k.req.ID, N: 1, Record: []byte(`{"x":"` + strings.Repeat("x", size) + `"}`), Open: []jsonrpc.ID{q.ID}, Message: &q, TTL: time.Hour,
	}), nil)
	<-answer
	return fmt.Sprintf("%d-1", k.Address().Stream)
}

// TestASmallCallIsFoundBesideALargeOneThatIsNot: for which there is no memory, or no turn. It is answered and cancelled.
func TestASmallCallIsFoundBesideALargeOneThatIsNot(t *testing.T) {
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"small"}}`
	for what, body := range map[string]string{"answered": answerQ, "cancelled": cancel} {
		for why, full := range map[string]bool{"no memory": true, "no turn": false} {
			t.Run(what+", "+why, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opt, b := stored(), newFake()
					opt.Replica = homeID
					_, p := servePipe(t, opt, b)
					p.initialize(mcp.V20251125)
					p.asksBeside(b, "large", "other", flowSize)
					p.asksBeside(b, "small", "q", 10)
					p.asksBeside(b, "larger", "another", 2*flowSize)
					others := []*peer{asksLarge(t, opt), asksLarge(t, opt), asksLarge(t, opt), asksLarge(t, opt)}
					r := &reading{Store: opt.Store}
					opt.Store = r
					memory := budget.New(1 << 30)
					if full {
						memory = budget.New(20 * flowSize)
					}
					opt, b = next(opt, memory)
					var back atomic.Int64
					b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
						back.Add(1)
						b.last().cancels = &call{Reply: out}
						return nil
					}
					h, q := servePipe(t, opt, b)
					for _, other := range others {
						q.goOn(b, other.session)
					}
					q.goOn(b, p.session)
					b.last().stranger = true
					var answers []<-chan *http.Response
					if full {
						q.live(h).Account().Charge(8 * flowSize)
					} else {
						r.mu.Lock()
						r.takes = time.Minute
						r.mu.Unlock()
						for _, other := range others {
							o := *q
							o.session = other.session
							answers = append(answers, o.async(answerQ))
						}
						synctest.Wait()
						r.mu.Lock()
						r.takes = 0
						r.mu.Unlock()
					}
					began := time.Now()
					want(t, "the status", q.status(body), http.StatusAccepted)
					if body == answerQ {
						want(t, "it waits for nobody", time.Since(began), time.Duration(0))
					}
					want(t, "calls that came back", back.Load(), 1)
					for _, answer := range answers {
						<-answer
					}
				})
			})
		}
	}
}

// slowToRead is a store that takes four seconds for what is large.
type slowToRead struct{ loaded }

func (s slowToRead) Get(ctx context.Context, at store.Address) (store.Record, error) {
	r, err := s.Store.Get(ctx, at)
	if len(r.Value) > flowSize {
		time.Sleep(4 * time.Second)
	}
	return r, err
}

// TestSmallCallsThatAreDueWaitForNoLargeOnes, which are all in time, too.
func TestSmallCallsThatAreDueWaitForNoLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large, small, due = 40, 10, 30 * time.Minute
		opt := stored()
		opt.Replica = homeID
		for i := range large + small {
			if i%5 > 0 {
				asksLarge(t, opt)
				continue
			}
			b := newFake()
			_, p := servePipe(t, opt, b)
			p.initialize(mcp.V20251125)
			p.asksBeside(b, "call", "q", 10)
		}
		opt.Store = slowToRead{loaded{&reading{Store: opt.Store}}}
		opt, b := next(opt, budget.New(1<<30))
		began := time.Now()
		b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
		var backSmall, backLarge atomic.Int64
		b.resumes = func(_ downstream.Caller, flow []byte, out downstream.Reply) error {
			if len(flow) < flowSize {
				backSmall.Add(1)
			} else {
				backLarge.Add(1)
			}
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		_, _ = servePipe(t, opt, b)
		time.Sleep(due + 3*time.Second)
		want(t, "small ones that came back", backSmall.Load(), small)
		time.Sleep(2*time.Minute - 3*time.Second)
		want(t, "large ones that came back", backLarge.Load(), large)
	})
}

// TestACallIsNotGivenUpBeforeItsDeadline: what is due may be a part of it, such as the end of a pause.
func TestACallIsNotGivenUpBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica = homeID
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		k := <-b.held
		want(t, "a question", k.asksLarge(1, false), nil) // an hour from its deadline
		_ = (<-answer).Body.Close()
		opt, b = next(opt, nil)
		began := time.Now()
		b.due = func([]byte) (time.Time, error) { return began.Add(10 * time.Second), nil }
		var back, resumed atomic.Bool
		b.restore = func([]byte) error {
			if back.Load() {
				return nil
			}
			return errors.New("its server is away")
		}
		b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			resumed.Store(true)
			out.Finish(downstream.Result(`"call"`, []byte(`{}`)))
			return nil
		}
		_, _ = servePipe(t, opt, b)
		time.Sleep(10 * time.Minute)
		back.Store(true)
		time.Sleep(time.Minute)
		want(t, "it has come back once its server had", resumed.Load(), true)
	})
}

// TestACallThatCannotComeBackEndsWithAWord, which its client fetches: there is no memory for it, no turn, or no session for long enough.
func TestACallThatCannotComeBackEndsWithAWord(t *testing.T) {
	for why, hinder := range map[string]func(opt *Options, b *fakeBackend) (relieve func()){
		"no memory": func(opt *Options, _ *fakeBackend) func() {
			opt.Memory = budget.New(20 * flowSize)
			opt.Memory.Own().Charge(18 * flowSize)
			return func() { opt.Memory.Own().Give(18 * flowSize) }
		},
		"no session": func(_ *Options, b *fakeBackend) func() {
			var back atomic.Bool
			b.restore = func([]byte) error {
				if back.Load() {
					return nil
				}
				return errors.New("its server is away")
			}
			return func() { back.Store(true) }
		},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const due = time.Hour - 3*time.Minute // by as much its record outlives its deadline
				opt := stored()
				opt.Replica = homeID
				p, k := waitsLarge(t, opt)
				last := fmt.Sprintf("%d-1", k.Address().Stream)
				opt, b := next(opt, nil)
				began := time.Now()
				b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
				var log strings.Builder
				opt.Logger = zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.WarnLevel)
				relieve := hinder(&opt, b)
				_, q := servePipe(t, opt, b)
				time.Sleep(due + 3*time.Minute)
				synctest.Wait()
				if strings.Count(log.String(), "a call could not be brought back in time") != 1 {
					t.Fatalf("the log says\n%s", log.String())
				}
				relieve()
				q.session, q.version = p.session, string(mcp.V20251125)
				resp := q.get(last)
				if said := text(t, resp); resp.StatusCode != 200 || !strings.Contains(said, `"id":"call","error"`) || !strings.Contains(said, `"reason":"timeout"`) {
					t.Errorf("its client gets %d\n%s", resp.StatusCode, said)
				}
			})
		})
	}
}

// TestWhatIsDueLaterWaitsForFewLargeCalls: those that have no turn for ten seconds are tried again after it.
func TestWhatIsDueLaterWaitsForFewLargeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large, due = 200, 30 * time.Minute
		opt, b := stored(), newFake()
		opt.Replica = homeID
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		for i := range large {
			p.asksBeside(b, fmt.Sprint("c", i), fmt.Sprint("q", i), flowSize)
		}
		p.session = ""
		p.initialize(mcp.V20251125)
		p.asksBeside(b, "call", "q", 10)
		after := &slow{Store: opt.Store}
		opt.Store = after
		opt, b = next(opt, budget.New(1<<30))
		began := time.Now()
		b.due = func(flow []byte) (time.Time, error) {
			if len(flow) < flowSize {
				return began.Add(due + 20*time.Second), nil
			}
			return began.Add(due), nil
		}
		var small atomic.Int64
		b.resumes = func(_ downstream.Caller, flow []byte, out downstream.Reply) error {
			if len(flow) < flowSize {
				small.Add(1)
			}
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		_, _ = servePipe(t, opt, b)
		time.Sleep(due - time.Minute) // in which it is noted when they are due
		after.takes.Store(int64(3 * time.Second))
		time.Sleep(time.Minute + 20*time.Second + 30*time.Second)
		want(t, "calls that came back within half a minute", small.Load(), 1)
	})
}

// loaded is a store that has sessions loaded, too, as of notes.
type loaded struct{ *reading }

func (l loaded) Load(ctx context.Context, session string) ([]store.Record, error) {
	return l.Store.Load(ctx, session)
}

// TestTheManyCallsOfASessionThatEndsAreReadTogether where they are small; large ones one after the other.
func TestTheManyCallsOfASessionThatEndsAreReadTogether(t *testing.T) {
	for name, is := range map[string]struct{ size, calls, atOnce int }{"small ones": {10, 160, 16}, "large ones": {flowSize, 8, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica, opt.Store = homeID, alone{opt.Store, false}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20251125)
				for i := range is.calls {
					p.asksBeside(b, fmt.Sprint("c", i), fmt.Sprint("q", i), is.size)
				}
				r := &reading{Store: opt.Store}
				opt.Store = loaded{r}
				opt, b = next(opt, budget.New(1<<30))
				_, q := servePipe(t, opt, b)
				q.session, q.version = p.session, p.version
				want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				time.Sleep(time.Minute) // what was there at the start has been looked at
				r.mu.Lock()
				r.atOnce, r.takes = 0, 500*time.Millisecond
				r.mu.Unlock()
				began := time.Now()
				want(t, "DELETE", q.do(q.request(http.MethodDelete, "")).StatusCode, 204)
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("it takes %v", took)
				}
				want(t, "given up", len(b.last().givenUp), is.calls)
				_, atOnce := r.said()
				want(t, "read at once", atOnce, is.atOnce)
			})
		})
	}
}

// TestAResultInTheStoreIsFetchedWhereMemoryIsShort: its client was away, and comes back to another process. Nobody knows whether it has
// the result, so that gives way to nothing between its reading and its sending.
func TestAResultInTheStoreIsFetchedWhereMemoryIsShort(t *testing.T) {
	for _, times := range []int64{2, 4, 10, 11, 12, 16} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := stored()
				opt.Replica = homeID
				p, k := waitsLarge(t, opt)
				last := fmt.Sprintf("%d-2", k.Address().Stream)
				k.finish(`"` + strings.Repeat("r", flowSize) + `"`)
				opt, b := next(opt, budget.New(times*flowSize))
				_, q := servePipe(t, opt, b)
				q.goOn(b, p.session)
				for range 2 {
					resp := q.get(last)
					if said := text(t, resp); resp.StatusCode != http.StatusOK {
						t.Error(resp.StatusCode, said)
					}
				}
			})
		})
	}
}
