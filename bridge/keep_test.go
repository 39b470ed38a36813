package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/upstream"
)

// strongbox is a client whose calls are kept, until it breaks.
type strongbox struct {
	*client
	saves   sync.Mutex // guards what follows; after synctest.Wait nobody else does
	err     error
	kept    []downstream.Checkpoint
	held    []jsonrpc.ID // of the questions in there
	grown   []int        // by which room was asked for
	noRoom  error        // what is said then
	left    bool
	dropped bool
	asked   bool // when the latest record was kept, the question was out already
	shut    bool // its process stops: what has asked its client is left to another
}

func (s *strongbox) Checkpointer() downstream.Checkpointer { return s }

// breaks has what is saved from now on fail; nil: it does not.
func (s *strongbox) breaks(err error) {
	s.saves.Lock()
	defer s.saves.Unlock()
	s.err = err
}

// record returns the newest one.
func (s *strongbox) record() []byte {
	s.saves.Lock()
	defer s.saves.Unlock()
	return s.kept[len(s.kept)-1].Record
}

func (s *strongbox) Save(k downstream.Checkpoint) error {
	s.saves.Lock()
	defer s.saves.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.left {
		return downstream.ErrGone
	}
	s.asked = len(s.client.asked()) > 0
	s.kept = append(s.kept, k)
	if k.Message != nil {
		s.held = append(s.held, k.Message.ID)
		s.client.Send(*k.Message)
		if s.shut {
			return downstream.ErrGone
		}
	}
	return nil
}

func (s *strongbox) Grow(bytes int) error {
	s.grown = append(s.grown, bytes)
	return s.noRoom
}

func (s *strongbox) Holds(question jsonrpc.ID) bool {
	return slices.Contains(s.held, question)
}

func (s *strongbox) Drop() { s.dropped = true }

func (s *strongbox) Leave() { s.left = true }

// keeping begins a call whose client has a strongbox.
func keeping(t *testing.T, steps ...step) (*conversation, *script, *strongbox) {
	t.Helper()
	conv, up := session(t, Limits{}, steps...)
	s := &strongbox{client: &client{t: t, conv: conv}}
	s.begin()
	return conv, up, s
}

// begin makes the call.
func (s *strongbox) begin() {
	go s.conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{
		ID: "7", Method: mcp.MethodToolsCall, Params: []byte(book),
	}), s)
	synctest.Wait()
}

const accepted = `{"action":"accept","content":{"day":"Monday"}}`

func TestQuestionsAndAnswersAreKeptBeforeTheyCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, up, s := keeping(t, inputRequired(`"s"`, question1("q")), result(booked))
		if len(s.kept) != 1 || s.asked || len(s.kept[0].Open) != 1 || s.kept[0].Message == nil {
			t.Fatalf("kept %+v", s.kept)
		}
		flow, err := mrtr.Decode(s.kept[0].Record)
		if err != nil || len(flow.Outstanding()) != 1 || flow.Outstanding()[0].ServerRequestID != string(s.kept[0].Open[0]) {
			t.Fatalf("the record has %+v, %v", flow, err)
		}
		before := len(up.calls())
		s.answer(0, accepted)
		synctest.Wait()
		if len(s.kept) != 2 || s.kept[1].N <= s.kept[0].N || len(s.kept[1].Open) != 0 || !strings.Contains(string(s.kept[1].Record), `"state":"sending"`) {
			t.Fatalf("kept %d records", len(s.kept))
		}
		if len(up.calls()) != before+1 {
			t.Error("the call did not go on")
		}
		s.result()
	})
}

// TestAnAnswerBesideOpenQuestionsTakesRoomInTheStore: it makes what is kept larger, for as long as the others wait. The last one
// does not: the call goes on.
func TestAnAnswerBesideOpenQuestionsTakesRoomInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, s := keeping(t, inputRequired(`"s"`, question1("a")+","+question1("b")), result(booked))
		answer := func(n int) error {
			defer synctest.Wait()
			return conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: s.client.asked()[n].ID, Result: long})
		}
		s.noRoom = budget.ErrNoRoom
		if err := answer(0); !errors.Is(err, budget.ErrNoRoom) || len(s.client.asked()) != 1 || s.client.over() {
			t.Fatalf("without room: %v, %d questions", err, len(s.client.asked()))
		}
		s.noRoom = nil
		if err := answer(0); err != nil || len(s.client.asked()) != 2 {
			t.Fatalf("the same again: %v, %d questions", err, len(s.client.asked()))
		}
		s.noRoom = budget.ErrNoRoom
		if err := answer(1); err != nil {
			t.Errorf("the last one: %v", err)
		}
		s.result()
		if want := []int{len(long), len(long)}; !slices.Equal(s.grown, want) {
			t.Errorf("room was asked for by %v, want %v", s.grown, want)
		}
	})
}

func TestCallsThatAskNothingAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, s := keeping(t, result(booked))
		if s.result(); len(s.kept) != 0 {
			t.Errorf("kept %d records", len(s.kept))
		}
	})
}

func TestQuestionThatCannotBeKeptEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		s := &strongbox{client: &client{t: t, conv: conv}, err: errors.New("no space left on device")}
		s.begin()
		if len(s.client.asked()) > 0 {
			t.Error("the question left")
		}
		if text := s.rpcError().Message; !strings.Contains(text, "store") || strings.Contains(text, "space") {
			t.Errorf("the client is told %q", text)
		}
	})
}

// TestNothingFollowsAQuestionThatCannotBeKept but the call's end. The store may have it all the
// same, under the number that the stream's next event gets: a client that has had that
// event must have had its answer, since it will not be shown the question any more.
func TestNothingFollowsAQuestionThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		s := &strongbox{client: &client{t: t, conv: conv}, err: errors.New("context deadline exceeded")}
		s.begin()
		synctest.Wait()
		if len(s.client.sent) > 0 || !s.client.over() {
			t.Errorf("the client was told %v", s.client.sent)
		}
	})
}

func TestCallThatAnotherProcessTookIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, up, s := keeping(t, inputRequired(`"s"`, question1("q")), result(booked))
		s.err = downstream.ErrGone
		s.answer(0, accepted)
		synctest.Wait()
		if !s.left || len(up.calls()) != 1 || s.client.over() {
			t.Errorf("left %v, %d rounds", s.left, len(up.calls()))
		}
	})
}

// TestAQuestionThatNeverLeftIsAskedByWhoeverGoesOn: a process may end, or be told to, after it has kept
// one of the questions of a round, or an answer and not yet the question that follows that.
func TestAQuestionThatNeverLeftIsAskedByWhoeverGoesOn(t *testing.T) {
	sampling := `"s":{"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[]}}`
	sampled := `{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}`
	for name, tc := range map[string]struct {
		asks string
		shut bool // after the first question; else after its answer
		want string
	}{
		"of two at once": {question1("q") + "," + sampling, true, `{"q":` + accepted + `,"s":` + sampled + `}`},
		"the next one":   {question1("q") + "," + question1("r"), false, `{"q":` + accepted + `,"r":` + accepted + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, _ := session(t, Limits{}, inputRequired(`"s"`, tc.asks))
				s := &strongbox{client: &client{t: t, conv: here}, shut: tc.shut}
				s.begin()
				if !tc.shut {
					s.answer(0, accepted)
					s.kept, s.held = s.kept[:2], s.held[:1] // and then it was killed
				}
				held := slices.Clone(s.held)
				if n := len(s.client.asked()); s.left != tc.shut || tc.shut && n != 1 {
					t.Fatalf("left %v after %d questions", s.left, n)
				}
				first, record := s.client.asked()[0].ID, s.record()
				pass(mrtr.DefaultServerRequest + time.Minute) // until somebody comes for it
				there, up := session(t, Limits{}, result(booked))
				next := &strongbox{client: &client{t: t, conv: there}, held: held}
				if err := there.Resume(downstream.Caller{}, record, next); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(next.client.asked()) != 1 || next.client.asked()[0].ID == first {
					t.Fatalf("asked %v", next.client.asked())
				}
				if tc.shut {
					there.Answer(downstream.Caller{}, jsonrpc.Message{ID: first, Result: []byte(accepted)})
					next.client.answer(0, sampled)
				} else {
					next.client.answer(0, accepted)
				}
				if got := next.client.result(); !strings.Contains(got, `"ok"`) || member(up.calls()[0], "inputResponses") != tc.want {
					t.Errorf("%s for %s", got, member(up.calls()[0], "inputResponses"))
				}
				here.Close(sessions.Removed)
			})
		})
	}
}

func TestCallsThatWaitAreLeftToTheNextProcess(t *testing.T) {
	for cause, left := range map[error]bool{sessions.Closed: true, sessions.Removed: false, sessions.Expired: false} {
		synctest.Test(t, func(t *testing.T) {
			conv, _, s := keeping(t, inputRequired(`"s"`, question1("q")))
			conv.Close(cause)
			synctest.Wait()
			if s.left != left || s.over() == left {
				t.Errorf("%v: left %v, ended %v", cause, s.left, s.over())
			}
		})
	}
}

// TestACallThatWaitsForItsServerIsLeftAsOneThatDoes_D15: what was kept with the answer says that the server has it.
func TestACallThatWaitsForItsServerIsLeftAsOneThatDoes_D15(t *testing.T) {
	down := failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"})
	for cause, leave := range map[string]func(*conversation){
		"a stop": func(c *conversation) { c.Close(sessions.Closed) }, "a session that rests": func(c *conversation) { c.Leave() },
	} {
		synctest.Test(t, func(t *testing.T) {
			conv, _, s := keeping(t, inputRequired(`"s"`, question1("q")), down, down)
			s.answer(0, accepted)
			leave(conv)
			synctest.Wait()
			if !s.left || s.over() {
				t.Fatalf("%s: left %v, ended %v", cause, s.left, s.over())
			}
			there, up := session(t, Limits{}, result(booked))
			c := &client{t: t, conv: there}
			if err := there.Resume(downstream.Caller{}, s.kept[len(s.kept)-1].Record, c); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Second)
			if got := c.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 1 {
				t.Errorf("%s: %s, after %d requests", cause, got, len(up.calls()))
			}
		})
	}
}

// hangs is a server that works until nobody waits any more.
func hangs(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	<-ctx.Done()
	return nil, upstream.Interrupted(ctx, true)
}

// TestARequestThatIsKeptAsUnsentIsKeptAsSentBeforeItLeaves_D15: who makes it is killed while the server works, and
// whoever goes on with the call must not make it again.
func TestARequestThatIsKeptAsUnsentIsKeptAsSentBeforeItLeaves_D15(t *testing.T) {
	down := failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"})
	asks := inputRequired(`"s"`, question1("q"))
	for why, kept := range map[string]func(t *testing.T) (*strongbox, *script){
		"it was left as it waited for its server": func(t *testing.T) (*strongbox, *script) {
			before, _, s := keeping(t, asks, down, down)
			s.answer(0, accepted)
			before.Leave()
			synctest.Wait()
			conv, up := session(t, Limits{}, hangs)
			next := &strongbox{client: &client{t: t, conv: conv}}
			if err := conv.Resume(downstream.Caller{}, s.record(), next); err != nil {
				t.Fatal(err)
			}
			return next, up
		},
		"it was kept anew as it waited for its server": func(t *testing.T) (*strongbox, *script) {
			conv, up, s := keeping(t, asks, down, down, hangs)
			s.answer(0, accepted)
			conv.Renew()
			return s, up
		},
		"nobody answered its question": func(t *testing.T) (*strongbox, *script) {
			_, up, s := keeping(t, asks, hangs)
			pass(mrtr.DefaultServerRequest)
			return s, up
		},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, up := kept(t)
				pass(10 * time.Second)
				if len(up.calls()) == 0 || len(s.kept) == 0 {
					t.Fatalf("%d requests were made, %d records kept", len(up.calls()), len(s.kept))
				}
				if newest := s.kept[len(s.kept)-1]; !newest.Again || newest.Over == nil {
					t.Error("it is kept as an answer is, which its client would give again")
				}
				after, again := session(t, Limits{}, result(booked))
				c := &client{t: t, conv: after}
				if err := after.Resume(downstream.Caller{}, s.record(), c); err != nil {
					t.Fatal(err)
				}
				pass(10 * time.Second)
				if n, told := len(again.calls()), c.rpcError().Message; n != 0 || !strings.Contains(told, "unknown") {
					t.Errorf("%d requests were made again; the client got %s", n, told)
				}
			})
		})
	}
}

// TestARequestThatCannotBeKeptAsSentDoesNotLeave_D15: it waits, as at a server that is away.
func TestARequestThatCannotBeKeptAsSentDoesNotLeave_D15(t *testing.T) {
	for outage, sent := range map[time.Duration]int{20 * time.Second: 1, time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) {
			down := failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"})
			conv, up, s := keeping(t, inputRequired(`"s"`, question1("q")), down, down, result(booked))
			s.answer(0, accepted)
			conv.Renew()
			synctest.Wait()
			before := len(up.calls())
			s.breaks(errors.New("the store is away"))
			pass(outage)
			if n := len(up.calls()) - before; n != 0 {
				t.Fatalf("%d requests left while the store was away", n)
			}
			s.breaks(nil)
			pass(time.Minute)
			if n := len(up.calls()) - before; n != sent || !s.over() {
				t.Errorf("an outage of %v: %d requests, ended %v", outage, n, s.over())
			}
			if sent == 0 && !strings.Contains(s.rpcError().Message, "nothing was sent") {
				t.Errorf("the client got %v", s.rpcError())
			}
		})
	}
}

// TestRestoredSessionsHearOfWhatTheyMayHaveMissed_C20: of lists, and of resources once the
// server has acknowledged.
func TestRestoredSessionsHearOfWhatTheyMayHaveMissed_C20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &announcer{opened: make(chan *openListen, 8)}
		b := New(Options{Upstream: up, Log: zerolog.Nop()})
		defer b.Close()
		box := &inbox{}
		conv := b.newConversation(mcp.V20251125, downstream.Caller{}, announcing, box)
		b.adopt(conv)
		uris := []string{"file:///a", "file:///b"}
		hearing{conv}.subscriptions().Restore("", uris, nil, func(err error) { t.Error(err) })
		if got := string(conv.Record()); !strings.Contains(got, "file:///b") {
			t.Errorf("its record is %s before the server has acknowledged", got)
		}
		synctest.Wait()
		(<-up.opened).acknowledge()
		if got := box.take(); !strings.Contains(got, uris[0]) || !strings.Contains(got, uris[1]) {
			t.Errorf("the client is told %q", got)
		}
	})
}

// TestKnowsOnlyCallsThatAreUnderWay: a cancellation of any other may mean one in another
// process, be it one that was here, or one of a client that uses an id again.
func TestKnowsOnlyCallsThatAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, s := keeping(t, inputRequired(`"s"`, question1("q")))
		if !conv.Knows(downstream.Caller{}, "7") {
			t.Error("it does not know a call that waits")
		}
		conv.Leave()
		if !s.left || conv.Knows(downstream.Caller{}, "7") {
			t.Errorf("left %v, and it knows %v of the call", s.left, conv.Knows(downstream.Caller{}, "7"))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		conv, _, s := keeping(t, result(booked))
		if s.result(); conv.Knows(downstream.Caller{}, "7") {
			t.Error("it knows a call that is over")
		}
	})
}

// TestAQuestionForWhichThereIsNoRoomIsNotWithdrawn: its client has never seen it.
func TestAQuestionForWhichThereIsNoRoomIsNotWithdrawn(t *testing.T) {
	for _, full := range []error{budget.ErrNoRoom, budget.ErrShare} {
		synctest.Test(t, func(t *testing.T) {
			conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
			s := &strongbox{client: &client{t: t, conv: conv}, err: full}
			s.begin()
			if len(s.client.sent) > 0 || !s.client.over() {
				t.Errorf("%v: the client was told %v, the call is over: %v", full, s.client.sent, s.client.over())
			}
		})
	}
}

// stuck is a strongbox that takes nothing in until its call is over.
type stuck struct{ *strongbox }

func (s stuck) Checkpointer() downstream.Checkpointer { return s }

func (s stuck) Save(k downstream.Checkpoint) error {
	for !k.Over() {
		time.Sleep(time.Second)
	}
	return downstream.ErrGone
}

// TestCallsEndWhileTheirQuestionWaitsForTheStore: when they are cancelled or have no time left, when their session
// ends, and when the process does; of the question, which has not left, nothing is said.
func TestCallsEndWhileTheirQuestionWaitsForTheStore(t *testing.T) {
	for what, end := range map[string]func(*conversation){
		"cancelled": func(conv *conversation) {
			conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":7}`)})
		},
		"ended with its session": func(conv *conversation) { conv.Close(sessions.Removed) },
		"cut off":                func(conv *conversation) { conv.Close(sessions.Closed) },
		"out of time":            func(*conversation) { time.Sleep(24 * time.Hour) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
				s := stuck{&strongbox{client: &client{t: t, conv: conv}}}
				go s.conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{
					ID: "7", Method: mcp.MethodToolsCall, Params: []byte(book),
				}), s)
				synctest.Wait()
				end(conv)
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(s.client.sent) > 0 || !s.client.over() {
					t.Errorf("the client was told %v, the call is over: %v", s.client.sent, s.client.over())
				}
			})
		})
	}
}

// tardy is a strongbox that takes its time for an answer, and then it is another process's.
type tardy struct {
	*strongbox
	lets chan struct{}
}

func (s tardy) Checkpointer() downstream.Checkpointer { return s }

func (s tardy) Save(k downstream.Checkpoint) error {
	if k.Message != nil {
		return s.strongbox.Save(k)
	}
	<-s.lets
	return downstream.ErrGone
}

// TestACallThatEndsWhileItsAnswerIsKeptHasItsEnd: its next question stays unsaid, its end does not. What the call held was
// not given back otherwise, for good.
func TestACallThatEndsWhileItsAnswerIsKeptHasItsEnd(t *testing.T) {
	for what, end := range map[string]func(*conversation){
		"cancelled": func(conv *conversation) {
			conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":7}`)})
		},
		"ended with its session": func(conv *conversation) { conv.Close(sessions.Removed) },
		"cut off":                func(conv *conversation) { conv.Close(sessions.Closed) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("a")+","+question1("b")))
				s := tardy{&strongbox{client: &client{t: t, conv: conv}}, make(chan struct{})}
				go conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{
					ID: "7", Method: mcp.MethodToolsCall, Params: []byte(book),
				}), s)
				synctest.Wait()
				go func() {
					_ = conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: s.client.asked()[0].ID, Result: []byte(accepted)})
				}()
				synctest.Wait()
				end(conv)
				close(s.lets)
				synctest.Wait()
				if !s.client.over() || len(s.client.asked()) > 1 {
					t.Errorf("over: %v, asked %d questions, want the end and nothing else", s.client.over(), len(s.client.asked()))
				}
			})
		})
	}
}
