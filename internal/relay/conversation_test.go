package relay

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// scripted is a Server whose end of the line is the test.
type scripted struct {
	mu    sync.Mutex
	inbox Inbox
	got   []string
	mute  bool // does not answer initialize
	wont  bool // refuses initialize
	dead  bool
	over  int
}

func (s *scripted) Connect(_ downstream.Caller, inbox Inbox) (Line, error) {
	s.inbox = inbox
	return s, nil
}

func (s *scripted) Send(_ downstream.Caller, msg *jsonrpc.Message, text []byte) error {
	s.mu.Lock()
	s.got = append(s.got, string(text))
	dead := s.dead
	s.mu.Unlock()
	switch {
	case msg.Method != "initialize" || s.mute:
	case s.wont:
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}`))
	default:
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","x": 1}}`))
	}
	if dead {
		return errEnded
	}
	return nil
}

func (s *scripted) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over++
}

func (s *scripted) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1]
}

func converse(t *testing.T, push downstream.Pusher) (*scripted, downstream.Conversation) {
	t.Helper()
	s := &scripted{}
	conv, result, err := open(t, Options{Server: s, Calls: 3}, push)
	if err != nil || string(result) != `{"protocolVersion":"2025-03-26","x": 1}` || conv.Version() != "2025-03-26" {
		t.Fatalf("initialize gives %s, %v", result, err)
	}
	return s, conv
}

const aCall = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"x"}}`

func TestResponsesFindTheirRequests_A16(t *testing.T) {
	s, conv := converse(t, newClient())
	a, b := ask(t, conv, aCall), ask(t, conv, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got := s.got[1:]; !slices.Equal(got, []string{aCall, `{"jsonrpc":"2.0","id":1,"method":"ping"}`}) {
		t.Errorf("the server got %s", got)
	}
	s.inbox.Receive([]byte(`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"unknown","result":{}}]`))
	s.inbox.Receive([]byte(`{"jsonrpc":"2.0", "id":"a", "error":{"code":-1,"message":"no","more":1}}`))
	if got := b.wait(t); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("ping got %s", got)
	}
	if got := a.wait(t); got != `{"jsonrpc":"2.0", "id":"a", "error":{"code":-1,"message":"no","more":1}}` {
		t.Errorf("the call got %s", got)
	}
}

func TestBatchOfTheServerBeyondTheLimitEndsTheSession(t *testing.T) {
	c := newClient()
	s, conv := converse(t, c)
	a := ask(t, conv, aCall)
	s.inbox.Receive([]byte("[" + strings.Repeat("1,", maxBatch) + "1]"))
	if got := a.wait(t); !strings.Contains(got, "a batch of more than 1024 messages") {
		t.Errorf("the call got %s", got)
	}
}

func TestMessagesOfTheServerGoWhereTheyBelong(t *testing.T) {
	c := newClient()
	s, conv := converse(t, c)
	first := ask(t, conv, aCall)
	second := ask(t, conv, strings.Replace(aCall, `"id":"a"`, `"id":"b"`, 1))
	third := newReply()
	third.deaf = true
	conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, `{"jsonrpc":"2.0","id":"c","method":"x"}`)), third)
	conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, `{"jsonrpc":"2.0","method":"x","id":"d"}`)), newReply()) // one too many
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p"}}`
	question := `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`
	for _, msg := range []string{progress, question} {
		s.inbox.Receive([]byte(msg))
	}
	if !slices.Equal(second.sent, []string{progress, question}) || len(first.sent)+len(third.sent) > 0 {
		t.Errorf("the calls got %s, %s and %s", first.sent, second.sent, third.sent)
	}
	conv.Answer(downstream.Caller{}, message(t, `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`))
	if got := s.last(); got != `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}` {
		t.Errorf("the server got the answer %s", got)
	}
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	s.inbox.Receive([]byte(changed))
	if got := <-c.pushed; got != changed {
		t.Errorf("pushed %s", got)
	}
	s.inbox.Receive([]byte(`no message`))
	for _, id := range []jsonrpc.ID{`"a"`, `"b"`, `"c"`} {
		s.inbox.Fail(id, errors.New("done"))
	}
	s.inbox.Receive([]byte(question))
	if got := <-c.pushed; got != question {
		t.Errorf("without a aCall, pushed %s", got)
	}
}

// A client whose credentials have had their time hears of its calls only; their questions may come on any stream.
func TestAClientThatListensNoMoreHearsOfItsCalls_E34(t *testing.T) {
	c := newClient()
	s, conv := converse(t, c)
	out := ask(t, conv, aCall)
	conv.StopListening()
	question := `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`
	for _, msg := range []string{
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}`,
		question,
	} {
		s.inbox.Receive([]byte(msg))
	}
	if len(c.pushed) > 0 || !slices.Equal(out.sent, []string{question}) {
		t.Errorf("%d were pushed, the call got %s", len(c.pushed), out.sent)
	}
}

// A newer call whose client has left, for now or for good, takes no question of one that
// somebody waits for.
func TestAQuestionGoesWhereSomebodyReads(t *testing.T) {
	question := `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`
	for name, test := range map[string]struct {
		clients []*reply
		want    int // the last one stands for the stream of the session
	}{
		"the newest":                    {[]*reply{{}, {}}, 1},
		"the newest is away":            {[]*reply{{}, {left: true}}, 0},
		"the newest has left":           {[]*reply{{}, {gone: true}}, 0},
		"nobody there, one may return":  {[]*reply{{left: true}, {gone: true}}, 0},
		"nobody is there, and none may": {[]*reply{{gone: true}, {gone: true}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient()
			s, conv := converse(t, c)
			for i, out := range test.clients {
				out.done = make(chan struct{})
				text := strings.Replace(aCall, `"id":"a"`, `"id":`+strconv.Itoa(i), 1)
				conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, text)), out)
			}
			s.inbox.Receive([]byte(question))
			got := len(test.clients)
			for i, out := range test.clients {
				if len(out.sent) > 0 {
					got = i
				}
			}
			if got == len(test.clients) && <-c.pushed != question || got != test.want {
				t.Errorf("it went to %d", got)
			}
		})
	}
}

func TestAQuestionThatCannotReachTheClientIsDeclined(t *testing.T) {
	s, _ := converse(t, nil)
	s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`))
	if got := s.last(); !strings.Contains(got, `"id":"q","error":{"code":-32603`) {
		t.Errorf("the server got %s", got)
	}
}

func TestCancelledCallsEndWithoutAnAnswer_DT13(t *testing.T) {
	s, conv := converse(t, newClient())
	out := ask(t, conv, aCall)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`
	conv.Notify(downstream.Caller{}, message(t, cancel))
	if got := out.wait(t); got != "abandoned" || s.last() != cancel {
		t.Errorf("the call ends with %s, the server got %s", got, s.last())
	}
	s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"a","result":{}}`)) // late
}

func TestWhoDidNotOpenTheSessionHasNoPartInIt_H8(t *testing.T) {
	s, conv := converse(t, newClient())
	stranger, before := downstream.Caller{Principal: "other"}, len(s.got)
	conv.Notify(stranger, message(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
	if err := conv.Answer(stranger, message(t, `{"jsonrpc":"2.0","id":"q","result":{}}`)); err == nil || conv.Knows(stranger, "a") {
		t.Error("its answer is taken")
	}
	out := newReply()
	conv.Serve(t.Context(), stranger, downstream.NewRequest(message(t, aCall)), out)
	if out.refused == nil || out.refused.Status != 404 || len(s.got) != before {
		t.Errorf("refused with %+v, the server got %s", out.refused, s.got[before:])
	}
}

func TestOneIDIsNotUsedTwiceAtATime_B1(t *testing.T) {
	_, conv := converse(t, newClient())
	ask(t, conv, aCall)
	if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "already under way") {
		t.Errorf("the second gets %s", got)
	}
}

// Whom the server refuses may be served otherwise: the end of the line, which may come later, is not that of the client.
func TestTheEndOfALineThatDidNotOpenIsNotTheClients_A16(t *testing.T) {
	c := newClient()
	s := &scripted{wont: true}
	if _, _, err := open(t, Options{Server: s, Calls: 3}, c); err == nil {
		t.Fatal("it opens")
	}
	s.inbox.Ended(nil)
	select {
	case why := <-c.ended:
		t.Errorf("the client is told: %v", why)
	default:
	}
}

func TestTheEndOfTheLineEndsEveryCallAndTheConnection_DT19(t *testing.T) {
	c := newClient()
	s, conv := converse(t, c)
	out := ask(t, conv, aCall)
	s.inbox.Ended(nil)
	if got := out.wait(t); !strings.Contains(got, errEnded.Error()) {
		t.Errorf("the call ends with %s", got)
	}
	if why := <-c.ended; !errors.Is(why, errEnded) {
		t.Errorf("the connection ends with %v", why)
	}
	if later := ask(t, conv, aCall); later.refused == nil {
		t.Errorf("a later call gets %s", later.wait(t))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != 0 {
		t.Error("the line was closed before the conversation")
	}
}

func TestClosingEndsCallsAndTheLineOnce(t *testing.T) {
	s := &scripted{}
	r := New(Options{Server: s})
	conv, _, err := r.Open(t.Context(), downstream.Caller{}, message(t, initialize), newClient())
	if err != nil {
		t.Fatal(err)
	}
	out := ask(t, conv, aCall)
	conv.Close(nil)
	conv.Close(nil)
	r.Close()
	if got := out.wait(t); !strings.Contains(got, "session has ended; whether the call was executed is not known") || s.over != 1 {
		t.Errorf("the call ends with %s, the line was closed %d times", got, s.over)
	}
	if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "session has ended") {
		t.Errorf("a later call gets %s", got)
	}
	if _, _, err := r.Open(t.Context(), downstream.Caller{}, message(t, initialize), nil); err == nil {
		t.Error("a closed relay opens a conversation")
	}
}

func TestALineThatEndedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conv := converse(t, nil) // nobody ends the session meanwhile
		s.inbox.Ended(nil)
		synctest.Wait()
		s.mu.Lock()
		over := s.over
		s.mu.Unlock()
		if over != 1 {
			t.Errorf("the line was closed %d times", over)
		}
		conv.Close(nil)
	})
}

func TestSilenceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, _, err := open(t, Options{Server: &scripted{mute: true}, Start: time.Minute}, nil); err == nil || !strings.Contains(err.Error(), "in time") {
			t.Errorf("initialize ends with %v", err)
		}
		s := &scripted{}
		conv, _, err := open(t, Options{Server: s, Call: time.Hour}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "timeouts.flow") {
			t.Errorf("the call ends with %s", got)
		}
		synctest.Wait()
		if got := s.last(); !strings.Contains(got, `"method":"notifications/cancelled","params":{"requestId":"a"`) {
			t.Errorf("the server got %s", got)
		}
	})
}

func TestALongProgressTokenIsRefused(t *testing.T) {
	s, conv := converse(t, newClient())
	before := s.last()
	if got := ask(t, conv, strings.Replace(aCall, `"p"`, `"`+strings.Repeat("p", 1<<10)+`"`, 1)).wait(t); !strings.Contains(got, "-32602") {
		t.Errorf("the client gets %s", got)
	}
	if s.last() != before {
		t.Error("the server gets it")
	}
}

// Servers write the string of an id with other escapes than its client, or with none: its answer was dropped.
func TestAnIDIsFoundHoweverTheServerSpellsIt(t *testing.T) {
	for own, theirs := range map[string]string{`"é"`: `"\u00e9"`, `"a\/b"`: `"a/b"`, `"\u0061"`: `"a"`, `"\ud800"`: `"\uD800"`} {
		s, conv := converse(t, newClient())
		out := ask(t, conv, strings.Replace(aCall, `"a"`, own, 1))
		if got := s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":` + theirs + `,"result":{"x": 1}}`)); string(got) != own {
			t.Errorf("%s: the response is taken for one to %s", own, got)
		}
		if got, want := out.wait(t), `{"jsonrpc":"2.0","id":`+own+`,"result":{"x": 1}}`; got != want {
			t.Errorf("the client gets %s, want %s", got, want)
		}
		conv.Close(nil)
	}
	s, conv := converse(t, newClient())
	ask(t, conv, strings.Replace(aCall, `"a"`, `"1"`, 1))
	if got := s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)); got != "1" || len(conv.Look().Flows) != 1 {
		t.Error("a number is taken for a string")
	}
}
