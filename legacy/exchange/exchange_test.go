package exchange_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const commit = time.Second

// desk takes POSTs and answers them as a test says.
type desk struct {
	*exchange.Endpoint
	gate *gate.Gate
}

func newDesk(t *testing.T) *desk { return newDeskWith(t, commit) }

// newDeskWith returns one where responses become streams after a time.
func newDeskWith(t *testing.T, commit time.Duration) *desk {
	d := &desk{gate: gate.New()}
	streams := stream.NewEndpoint(stream.Options{
		MaxStreams: 2, MaxPending: 2, KeepAlive: 15 * time.Second, Retention: time.Minute, WriteTimeout: time.Second, ParkAfter: time.Second,
		Gate: d.gate, Logger: zerolog.Nop(), Slow: zerolog.Nop(),
	})
	t.Cleanup(streams.Close)
	d.Endpoint = exchange.NewEndpoint(exchange.Options{
		Streams: streams, Gate: d.gate, CommitDelay: commit, WriteTimeout: time.Second, Retention: time.Minute,
		Refuse: func(w http.ResponseWriter, _ *http.Request, refusal *downstream.Refusal) {
			web.WriteRefusal(w, refusal)
		},
	})
	return d
}

// post sends a request without a session, and returns its response when work has answered it.
func (d *desk) post(accept web.Accept, work func(ex *exchange.Exchange)) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
	var hold budget.Hold
	ex := d.Begin(w, r, nil, accept, &hold, &downstream.Caller{}, false)
	if ex == nil {
		return nil
	}
	defer ex.Detach()
	work(ex)
	ex.Wait(r)
	return w
}

func result(id string) downstream.Message {
	return downstream.Result(jsonrpc.ID(id), []byte(`{"content":[]}`))
}

func words() downstream.Message {
	return downstream.Notification(mcp.NotificationMessage, []byte(`{"level":"info","data":"x"}`))
}

func TestAnAnswerIsJSONUntilSomethingComesBeforeIt_E4_E6(t *testing.T) {
	d := newDesk(t)
	for name, tc := range map[string]struct {
		accept web.Accept
		said   bool
		media  string
	}{
		"alone":                  {web.AcceptBoth, false, "application/json"},
		"with something before":  {web.AcceptBoth, true, "text/event-stream"},
		"for JSON alone":         {web.AcceptJSON, true, "application/json"},
		"for event streams only": {web.AcceptSSE, false, "text/event-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			w := d.post(tc.accept, func(ex *exchange.Exchange) {
				if ex.Interactive() != tc.accept.Has(web.AcceptSSE) {
					t.Error("who can be asked is wrong")
				}
				if tc.said && ex.Interactive() {
					ex.Send(words())
				}
				ex.Finish(result("7"))
			})
			body := w.Body.String()
			if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(got, tc.media) {
				t.Errorf("%d %s", w.Code, got)
			}
			if !strings.Contains(body, `"id":7`) || strings.Contains(body, `"data":"x"`) != (tc.said && tc.accept.Has(web.AcceptSSE)) {
				t.Errorf("body: %s", body)
			}
		})
	}
}

// A response that takes long becomes a stream, so that its client sees that it is alive.
func TestALateAnswerIsAStream_E6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		w := d.post(web.AcceptBoth, func(ex *exchange.Exchange) {
			if d.Fresh() != 1 {
				t.Errorf("%d are fresh", d.Fresh())
			}
			<-time.After(commit + time.Millisecond)
			d.Run()
			ex.Finish(result("7"))
		})
		if got := w.Header().Get("Content-Type"); got != "text/event-stream" || !strings.Contains(w.Body.String(), `"id":7`) || d.Fresh() != 0 {
			t.Errorf("%s: %s", got, w.Body)
		}
	})
}

func TestARefusalIsAStatusOnlyBeforeAnythingElse_H3(t *testing.T) {
	d := newDesk(t)
	refusal := &downstream.Refusal{Status: http.StatusUnauthorized, Challenge: []string{"Bearer"}}
	w := d.post(web.AcceptBoth, func(ex *exchange.Exchange) {
		if !ex.Refuse(refusal) {
			t.Error("it was too late at once")
		}
	})
	if w.Code != http.StatusUnauthorized || w.Header().Get("Www-Authenticate") != "Bearer" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	w = d.post(web.AcceptBoth, func(ex *exchange.Exchange) {
		ex.Send(words())
		if ex.Refuse(refusal) {
			t.Error("a response that has begun was refused")
		}
		ex.Finish(result("7"))
	})
	if w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

// Each part of an array is answered once; what comes after the end counts for nothing, and
// a part that nobody wants an answer to holds up no other.
func TestABatchIsAnsweredWhenAllItsPartsAre_E2(t *testing.T) {
	d := newDesk(t)
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
	var hold budget.Hold
	ex := d.BeginBatch(w, r, nil, web.AcceptJSON, &hold, &downstream.Caller{}, 3)
	defer ex.Detach()
	one, two, three := ex.Member(), ex.Member(), ex.Member()
	two.Finish(result("2"))
	two.Finish(result("22"))
	three.Abandon()
	if w.Body.Len() > 0 {
		t.Errorf("before all have answered: %s", w.Body)
	}
	one.Finish(result("1"))
	ex.Wait(r)
	if body := w.Body.String(); !strings.HasPrefix(body, "[") || strings.Count(body, `"id"`) != 2 || strings.Contains(body, "22") {
		t.Errorf("the answer: %s", body)
	}
}

// On a busy machine a response may be due before its request has been taken in.
func TestAResponseThatIsDueAtOnceIsWhole_E6(t *testing.T) {
	d := newDeskWith(t, time.Nanosecond)
	var looks sync.WaitGroup
	over := make(chan struct{})
	looks.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				d.Run()
			}
		}
	})
	for range 2000 {
		w := d.post(web.AcceptJSON|web.AcceptSSE, func(ex *exchange.Exchange) { ex.Finish(result("1")) })
		if !strings.Contains(w.Body.String(), `"result"`) {
			t.Fatalf("the answer: %s", w.Body)
		}
	}
	close(over)
	looks.Wait()
}

func TestNothingBeginsDuringShutdown(t *testing.T) {
	d := newDesk(t)
	left := 0
	d.post(web.AcceptJSON, func(ex *exchange.Exchange) {
		ex.Occupy(func() { left++ })
		ex.Finish(result("1"))
	})
	if left != 1 || d.gate.Count() != 0 {
		t.Errorf("%d places given back, %d under way", left, d.gate.Count())
	}
	d.gate.Shut()
	if d.post(web.AcceptJSON, func(*exchange.Exchange) {}) != nil {
		t.Error("an exchange began")
	}
}
