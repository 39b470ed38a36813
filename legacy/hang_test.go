package legacy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// hung is a store that does nothing for a while, and does in the end what was asked of it, though nobody waits for that
// any more.
type hung struct {
	mu    sync.Mutex
	on    bool
	asked []func() error
}

func (h *hung) is() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on
}

// take notes what is asked, nil for nothing that changes anything.
func (h *hung) take(ctx context.Context, change func() error) error {
	<-ctx.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	if change != nil {
		h.asked = append(h.asked, change)
	}
	return ctx.Err()
}

func (h *hung) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on = true
}

// end has the store answer again. It returns what it was asked for, and has not done.
func (h *hung) end() (late []func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	late, h.on, h.asked = h.asked, false, nil
	return late
}

const answeredFlow = `{"answered":true}`

// answers keeps an answer to the only question of a call, as its client's POST does, and leaves the call if it cannot.
func (f *fenced) answers() error {
	f.t.Helper()
	err := f.call.Checkpointer().Save(downstream.Checkpoint{Request: `"call"`, N: 2, Record: []byte(answeredFlow), TTL: time.Hour})
	if errors.Is(err, downstream.ErrGone) {
		f.call.Checkpointer().Leave()
	}
	return err
}

const answerQ = `{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}`

// notHere has the conversation know nothing of the question, since the call was left.
func (f *fenced) notHere() {
	f.conv.mu.Lock()
	defer f.conv.mu.Unlock()
	f.conv.leaving = 1
}

// TestAnAnswerThatDoesNotCountIsTakenBack: its client was told 503, so the server gets nothing, whatever becomes of what the
// store was asked, and when. The call is what it was, for whoever has the answer next.
func TestAnAnswerThatDoesNotCountIsTakenBack(t *testing.T) {
	for name, late := range map[string]func(f *fenced, asked []func() error){
		"what the store was asked is done when it goes on": func(_ *fenced, asked []func() error) { doAll(asked) },
		"it is done later": func(_ *fenced, asked []func() error) { time.AfterFunc(10*time.Second, func() { doAll(asked) }) },
		"it is never done": func(*fenced, []func() error) {},
	} {
		for _, again := range []time.Duration{0, 15 * time.Second} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := fencedBy(t, dead{})
					var flows []string
					f.conv.resumes = func(_ downstream.Caller, flow []byte, _ downstream.Reply) error {
						flows = append(flows, string(flow))
						return nil
					}
					f.store.hung.begin()
					want(t, "an answer that the store does not take", f.answers(), downstream.ErrGone)
					late(f, f.store.hung.end())
					time.Sleep(again)
					f.notHere()
					want(t, "it comes again", f.p.status(answerQ), http.StatusAccepted)
					if len(flows) != 1 || flows[0] != `{}` {
						t.Errorf("gone on with %q", flows)
					}
					time.Sleep(time.Minute)
					if _, r := f.record(); strings.Contains(string(r.Value), answeredFlow) || !strings.Contains(string(r.Value), "elicitation/create") {
						t.Errorf("the store has %s", r.Value)
					}
				})
			})
		}
	}
}

// TestAStopFirstTakesBackAnAnswerThatDoesNotCount: the next process would use it, and not the one that comes then.
func TestAStopFirstTakesBackAnAnswerThatDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fencedBy(t, dead{})
		f.store.hung.begin()
		want(t, "an answer that the store does not take", f.answers(), downstream.ErrGone)
		stopped := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		go func() { stopped <- f.h.Shutdown(ctx) }()
		time.Sleep(10 * time.Second)
		doAll(f.store.hung.end())
		want(t, "the stop", <-stopped, nil)
		if _, r := f.record(); strings.Contains(string(r.Value), answeredFlow) || !strings.Contains(string(r.Value), "elicitation/create") {
			t.Errorf("the next process finds %s", r.Value)
		}
	})
}

// TestAnAnswerThatADiskDoesNotTakeIsNotUsed: the next process would ask for it once more, and the server do everything twice.
func TestAnAnswerThatADiskDoesNotTakeIsNotUsed(t *testing.T) {
	for name, fails := range map[string]func(*shaky) (goesOn func()){
		"it is full": func(s *shaky) func() {
			s.away.Store(true)
			return func() { s.away.Store(false) }
		},
		"it does nothing": func(s *shaky) func() {
			s.hung.begin()
			return func() { doAll(s.hung.end()) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fencedIn(t, &shaky{Store: stored().Store, alone: true}, nil)
				var flows []string
				f.conv.resumes = func(_ downstream.Caller, flow []byte, _ downstream.Reply) error {
					flows = append(flows, string(flow))
					return nil
				}
				goesOn := fails(f.store)
				want(t, "an answer", f.answers(), downstream.ErrGone)
				f.notHere()
				want(t, "it comes again", f.p.status(answerQ), http.StatusServiceUnavailable)
				goesOn()
				time.Sleep(time.Second)
				f.notHere()
				want(t, "and again", f.p.status(answerQ), http.StatusAccepted)
				if len(flows) != 1 || flows[0] != `{}` {
					t.Errorf("gone on with %q", flows)
				}
			})
		})
	}
}

// TestTheDeadlineOfACallOutlivesAnAnswerThatIsTakenBack: the call is in the store alone, its replica lives, and nobody comes for it.
func TestTheDeadlineOfACallOutlivesAnAnswerThatIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fencedBy(t, dead{})
		began, back := time.Now(), make(chan time.Duration, 10)
		due := began.Add(5 * time.Minute)
		f.b.due = func([]byte) (time.Time, error) { return due, nil }
		f.conv.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			back <- time.Since(began)
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		time.Sleep(time.Minute) // what was there at the start has been looked at
		f.store.hung.begin()
		want(t, "an answer that the store does not take", f.answers(), downstream.ErrGone)
		doAll(f.store.hung.end())
		time.Sleep(10 * time.Minute)
		if len(back) != 1 {
			t.Fatalf("it comes back %d times", len(back))
		}
		if got := <-back; got < 5*time.Minute || got > 6*time.Minute {
			t.Errorf("it comes back after %v", got)
		}
	})
}

func doAll(asked []func() error) {
	for _, do := range asked {
		_ = do()
	}
}

// TestNobodyIsToldOfACallInDoubt: another replica that asks for it waits, and is not told that it is not here before the
// store has it as it is.
func TestNobodyIsToldOfACallInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		passed := func(method, body string) int {
			f.notHere()
			r := f.p.request(method, body)
			if method == http.MethodGet {
				r.Header.Set("Last-Event-ID", f.stream+"-1")
			}
			w := httptest.NewRecorder()
			f.h.ServeHTTP(w, Forwarded(r))
			return w.Code
		}
		f.store.hung.begin()
		want(t, "an answer that the store does not take", f.answers(), downstream.ErrGone)
		want(t, "another answer", passed(http.MethodPost, answerQ), http.StatusServiceUnavailable)
		want(t, "a client that comes back", passed(http.MethodGet, ""), http.StatusServiceUnavailable)
		f.conv.stranger = true
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`
		want(t, "a cancellation", passed(http.MethodPost, cancel), http.StatusServiceUnavailable)
		asked := f.store.hung.end()
		doAll(asked)
		time.AfterFunc(time.Nanosecond, func() {
			if _, r := f.record(); !strings.Contains(string(r.Value), answeredFlow) {
				t.Errorf("the store has %s before that is taken back", r.Value)
			}
		})
		want(t, "an answer when it goes on", passed(http.MethodPost, answerQ), http.StatusMisdirectedRequest)
		if _, r := f.record(); strings.Contains(string(r.Value), answeredFlow) {
			t.Errorf("the store has %s", r.Value)
		}
	})
}

// TestAnAnswerThatIsBeingKeptIsNotAnsweredTwice: one that comes meanwhile is acknowledged when the first is.
func TestAnAnswerThatIsBeingKeptIsNotAnsweredTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		f.conv.resumes = func(downstream.Caller, []byte, downstream.Reply) error { return nil }
		f.store.hung.begin()
		kept := make(chan error, 1)
		go func() { kept <- f.answers() }()
		synctest.Wait()
		time.AfterFunc(10*time.Second, func() { doAll(f.store.hung.end()) })
		f.notHere()
		want(t, "one that comes meanwhile", f.p.status(answerQ), http.StatusAccepted)
		want(t, "the first one", <-kept, nil)
	})
}

// TestCallsAreFoundOneAfterTheOther: all of a session's may be larger than the memory.
func TestCallsAreFoundOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		c := &counting{Store: opt.Store}
		g := &glanced{counting: c}
		opt.Replica, opt.Store, opt.Peers = homeID, g, dead{}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b)
		b.last().mu.Lock()
		b.last().leaving = 1 // the conversation knows nothing of the question
		b.last().mu.Unlock()
		before := c.loads.Load()
		p.status(answerQ)
		if c.loads.Load() > before || g.glances == 0 {
			t.Errorf("%d loads, %d glances", c.loads.Load()-before, g.glances)
		}
	})
}

// TestACancellationOutlastsAnAnswerThatIsTakenBack: the call ends, and does not come back.
func TestACancellationOutlastsAnAnswerThatIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		f.conv.cancels = f.call
		f.store.hung.begin()
		k := downstream.Checkpoint{Request: `"call"`, N: 2, Record: []byte(answeredFlow), TTL: time.Hour}
		want(t, "an answer that the store does not take", f.call.Checkpointer().Save(k), downstream.ErrGone)
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`
		want(t, "cancelled just then", f.p.status(cancel), http.StatusServiceUnavailable)
		doAll(f.store.hung.end())
		time.Sleep(time.Minute)
		f.wantNoCall()
		want(t, "cancelled again", f.p.status(cancel), http.StatusAccepted)
	})
}

// TestACancellationOfAnIdThatTwoCallsHaveMeansNobody_B1, wherever they are.
func TestACancellationOfAnIdThatTwoCallsHaveMeansNobody_B1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fencedBy(t, dead{})
		f.p.asked(f.b)
		f.conv.cancels = f.call
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`
		began := time.Now()
		want(t, "a cancellation", f.p.status(cancel), http.StatusAccepted)
		if time.Since(began) > 0 {
			t.Error("it is tried again and again")
		}
		f.call.finish(`{"still":"here"}`)
		if got := text(t, f.answer); !strings.Contains(got, "still") {
			t.Errorf("its client is told %s", got)
		}
	})
}

// wantNoCall: the store has nothing that anybody could go on with.
func (f *fenced) wantNoCall() {
	f.t.Helper()
	page, err := f.store.List(f.t.Context(), "", 100)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range page.Records {
		if r.Kind == store.Flow {
			f.t.Errorf("the store has %v", r)
		}
	}
}

// TestAQuestionThatIsKeptLateIsAskedByNobody: its call has ended with an error meanwhile.
func TestAQuestionThatIsKeptLateIsAskedByNobody(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			opt := stored()
			f := &fenced{t: t, store: &shaky{Store: opt.Store}}
			opt.Store, opt.Replica = f.store, homeID
			b := newFake()
			f.h, f.p = servePipe(t, opt, b)
			f.p.initialize(mcp.V20250618)
			answer := f.p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
			f.call = <-b.held
			f.store.hung.begin()
			if err := f.call.ask(time.Hour, nil); err == nil {
				t.Error("its question is kept")
			}
			f.call.Reply.Finish(downstream.Failure(f.call.req.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "unkept"}))
			<-answer
			asked := f.store.hung.end()
			if first {
				doAll(asked[:1])
			}
			time.Sleep(10 * time.Second)
			doAll(asked[:1])
			if _, r := f.record(); !strings.Contains(string(r.Value), `"over":true`) {
				t.Errorf("the store has %s", r.Value)
			}
			time.Sleep(2 * time.Hour)
			f.wantNoCall()
		})
	}
}

// TestAnAnswerIsNotAcknowledgedWhileNobodyKnowsOfItsCall: it was taken over for it, and then the store was away.
func TestAnAnswerIsNotAcknowledgedWhileNobodyKnowsOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fencedBy(t, dead{})
		f.comesBack()
		f.takenOver()
		goOn := f.conv.resumes
		f.conv.resumes = func(caller downstream.Caller, flow []byte, out downstream.Reply) error {
			f.store.away.Store(true)
			f.conv.leaving = 2 * settleTries // the answer is not kept
			return goOn(caller, flow, out)
		}
		f.notHere()
		want(t, "the answer", f.p.status(answerQ), http.StatusServiceUnavailable)
	})
}

// TestAnAnswerWaitsForAStoreThatComesBack, as the settings say, and where they say that nothing waits until that is noticed.
func TestAnAnswerWaitsForAStoreThatComesBack(t *testing.T) {
	for away, status := range map[time.Duration]int{noticed / 2: http.StatusAccepted, 2 * noticed: http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			opt := stored()
			s := &shaky{Store: opt.Store}
			opt.Store = s
			b := newFake()
			_, p := servePipe(t, opt, b)
			p.initialize(mcp.V20250618)
			b.last().leaving = 1
			s.away.Store(true)
			time.AfterFunc(away, func() { s.away.Store(false) })
			want(t, "an answer", p.status(answerQ), status)
		})
	}
}
