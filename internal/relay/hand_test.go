package relay

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// tiresome is a carrier that takes what it is handed after some failures.
type tiresome struct {
	mu       sync.Mutex
	failures []error
	handed   []string // "seconds text"
	untook   []string
	began    time.Time
}

func (*tiresome) request(ctx context.Context, o *outgoing) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	<-ctx.Done() // it goes on
}

func (s *tiresome) hand(_ context.Context, o *outgoing) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed = append(s.handed, time.Since(s.began).String()+" "+string(o.text))
	if len(s.failures) > 0 {
		err, s.failures = s.failures[0], s.failures[1:]
	}
	return err
}

func (s *tiresome) untaken(o *outgoing, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untook = append(s.untook, string(o.text)+": "+why.Error())
}

// What people answered is offered again while the server is busy or away, and so is a
// cancellation; what else there is to say goes on meanwhile.
func TestAnAnswerIsOfferedAgain_D15(t *testing.T) {
	away := errors.New("connection refused")
	busy := func(code int, wait time.Duration) error { return &badStatus{code, wait} }
	for name, test := range map[string]struct {
		text     string
		failures []error
		want     []string // with the next message after it
		lost     string
	}{
		"taken":         {`{"id":1,"result":{}}`, nil, []string{"0s A", "0s B"}, ""},
		"busy":          {`{"id":1,"result":{}}`, []error{busy(503, 2*time.Second)}, []string{"0s A", "0s B", "2s A"}, ""},
		"away":          {`{"id":1,"result":{}}`, []error{away, nil, away}, []string{"0s A", "0s B", "250ms A", "750ms A"}, ""},
		"cancellation":  {`{"method":"notifications/cancelled","params":{"requestId":1}}`, []error{away}, []string{"0s A", "0s B", "250ms A"}, ""},
		"notification":  {`{"method":"notifications/x"}`, []error{away}, []string{"0s A", "0s B"}, "A: connection refused"},
		"refused":       {`{"id":1,"result":{}}`, []error{busy(400, 0)}, []string{"0s A", "0s B"}, "A: the server answered a request with HTTP 400"},
		"unauthorized":  {`{"id":1,"result":{}}`, []error{&downstream.Refusal{Status: 401}}, []string{"0s A", "0s B"}, "A: upstream refused"},
		"a longer wait": {`{"id":1,"result":{}}`, []error{busy(429, time.Hour)}, []string{"0s A", "0s B", "5s A"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tiresome{failures: test.failures, began: time.Now()}
				c := newCourier(s, nil)
				for _, send := range [][2]string{{test.text, "A"}, {`{"method":"notifications/y"}`, "B"}} {
					msg := message(t, strings.Replace(send[0], `{`, `{"jsonrpc":"2.0",`, 1))
					if err := c.Send(downstream.Caller{}, &msg, []byte(send[1])); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if !slices.Equal(s.handed, test.want) {
					t.Errorf("handed %q", s.handed)
				}
				if got := strings.Join(s.untook, ""); !strings.HasPrefix(got, test.lost) || (got == "") != (test.lost == "") {
					t.Errorf("lost %q", got)
				}
				c.Close()
			})
		})
	}
}

// Whoever hears that an answer is lost may have more to send than there is room for: the one who
// makes room must not wait for that.
func TestTheLossOfAnAnswerHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &talkative{tiresome: tiresome{failures: []error{&downstream.Refusal{Status: 401}}, began: time.Now()}, begin: make(chan struct{})}
		s.courier = newCourier(s, nil)
		answer, note := message(t, `{"jsonrpc":"2.0","id":1,"result":{}}`), message(t, `{"jsonrpc":"2.0","method":"notifications/y"}`)
		for _, msg := range append([]jsonrpc.Message{answer}, slices.Repeat([]jsonrpc.Message{note}, maxWaiting)...) {
			if err := s.courier.Send(downstream.Caller{}, &msg, []byte("text")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		close(s.begin)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(s.handed); got != 2+maxWaiting {
			t.Errorf("%d messages were handed over", got)
		}
		s.courier.Close()
	})
}

// talkative sends something when it hears of a message that is lost.
type talkative struct {
	tiresome
	courier *courier
	begin   chan struct{}
}

func (s *talkative) hand(ctx context.Context, o *outgoing) error {
	<-s.begin
	return s.tiresome.hand(ctx, o)
}

func (s *talkative) untaken(*outgoing, error) {
	msg := jsonrpc.Message{Method: "notifications/cancelled"}
	_ = s.courier.Send(downstream.Caller{}, &msg, []byte("more"))
}

// A cancellation that is offered again must not meet the next request with its id.
func TestACancellationIsNotOfferedForAnotherRequest_B1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tiresome{failures: []error{&badStatus{503, 0}}, began: time.Now()}
		c := newCourier(s, nil)
		for _, text := range []string{`"method":"notifications/cancelled","params":{"requestId":1}`, `"id":1,"method":"ping"`} {
			msg := message(t, `{"jsonrpc":"2.0",`+text+`}`)
			if err := c.Send(downstream.Caller{}, &msg, []byte(text[:6])); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.handed) != 1 {
			t.Errorf("handed %q", s.handed)
		}
		c.Close()
	})
}

// An answer that the server never takes ends the call that asked, in place of
// leaving it to wait for what will not come.
func TestACallWhoseAnswerIsLostEnds(t *testing.T) {
	s, conv := converse(t, newClient())
	first := ask(t, conv, aCall)
	s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"q1","method":"elicitation/create"}`))
	second := ask(t, conv, strings.Replace(aCall, `"id":"a"`, `"id":"b"`, 1))
	s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"q2","method":"elicitation/create"}`))
	s.inbox.Unanswered(`"q1"`, errors.New("it is away"))
	if got := first.wait(t); !strings.Contains(got, `"id":"a","error"`) || !strings.Contains(got, "the answer to a question of this call did not reach the server: it is away") {
		t.Errorf("the call got %s", got)
	}
	if got := s.last(); !strings.Contains(got, `"method":"notifications/cancelled","params":{"requestId":"a"`) {
		t.Errorf("the server got %s", got)
	}
	s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"b","result":{}}`))
	if got := second.wait(t); got != `{"jsonrpc":"2.0","id":"b","result":{}}` {
		t.Errorf("the other call got %s", got)
	}
}

// told is an Inbox that keeps which questions stay without an answer.
type told struct {
	Inbox
	unanswered []jsonrpc.ID
}

func (i *told) Unanswered(question jsonrpc.ID, _ error) {
	i.unanswered = append(i.unanswered, question)
}

// A server that refuses an answer, one to a question that it has forgotten, goes on without it.
func TestAnAnswerThatIsRefusedEndsNoCall(t *testing.T) {
	s := NewHTTP(HTTPOptions{})
	for _, test := range []struct {
		kind jsonrpc.Kind
		why  error
		want bool
	}{
		{jsonrpc.Response, &badStatus{http.StatusBadRequest, 0}, false},
		{jsonrpc.Response, &badStatus{http.StatusServiceUnavailable, 0}, true},
		{jsonrpc.Response, &downstream.Refusal{Status: http.StatusUnauthorized}, true},
		{jsonrpc.Response, errors.New("connection refused"), true},
		{jsonrpc.Notification, errors.New("connection refused"), false},
	} {
		inbox := &told{}
		s.untaken(inbox, &outgoing{kind: test.kind, id: `"q"`}, test.why)
		if got := len(inbox.unanswered) == 1; got != test.want {
			t.Errorf("%v, %v: %q", test.kind, test.why, inbox.unanswered)
		}
	}
}
