package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/turns"
)

func callOf(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"progressToken":%d},"name":"x"}}`, id, id)
}

// paced is a conversation that may have one call of two places.
func paced(t *testing.T) (*scripted, downstream.Conversation, *turns.Queue) {
	t.Helper()
	s, q := &scripted{}, turns.New(2)
	conv, _, err := open(t, Options{Server: s, Turns: q}, newClient())
	if err != nil {
		t.Fatal(err)
	}
	return s, conv, q
}

// names are the calls that the server got, in order.
func (s *scripted) names() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.got[1:] {
		ids = append(ids, strings.TrimPrefix(strings.SplitN(text, ",", 3)[1], `"`))
	}
	return ids
}

func expect(t *testing.T, what string, s *scripted, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := s.names(); !slices.Equal(got, want) {
		t.Errorf("%s: the server got %q, want %q", what, got, want)
	}
}

// Requests of a connection take turns like any others: who floods the server over one leaves
// the places of others alone. They keep their order, and nothing else waits for them.
func TestRequestsOverConnectionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conv, q := paced(t)
		first, second, third := ask(t, conv, callOf(1)), ask(t, conv, callOf(2)), ask(t, conv, callOf(3))
		expect(t, "a flood", s, `id":1`)
		if !q.TryEnter(turns.Who{Principal: "somebody else"}) {
			t.Error("nobody else has a place")
		}
		conv.Notify(downstream.Caller{}, message(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))
		expect(t, "a notification waits for nobody", s, `id":1`, `method":"notifications/roots/list_changed"}`)
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		expect(t, "the next", s, `id":1`, `method":"notifications/roots/list_changed"}`, `id":2`)
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":2,"result":{}}`))
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":2,"result":{}}`)) // gives nothing back twice
		expect(t, "the last", s, `id":1`, `method":"notifications/roots/list_changed"}`, `id":2`, `id":3`)
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":3,"result":{}}`))
		q.Leave(turns.Who{Principal: "somebody else"})
		for _, out := range []*reply{first, second, third} {
			out.wait(t)
		}
	})
}

// A call whose server asks something waits for a person, and holds nobody up.
func TestACallThatHasBegunToAnswerGivesItsPlaceBack(t *testing.T) {
	for name, sign := range map[string]string{
		"a question": `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`,
		"progress":   `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, conv, _ := paced(t)
				_, second := ask(t, conv, callOf(1)), ask(t, conv, callOf(2))
				expect(t, "before", s, `id":1`)
				s.inbox.Receive([]byte(sign))
				expect(t, "after", s, `id":1`, `id":2`)
				s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":2,"result":{}}`))
				second.wait(t)
			})
		})
	}
}

func TestWhatIsCancelledBeforeItsTurnNeverReachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conv, _ := paced(t)
		_, second, third := ask(t, conv, callOf(1)), ask(t, conv, callOf(2)), ask(t, conv, callOf(3))
		conv.Notify(downstream.Caller{}, message(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`))
		if got := second.wait(t); got != "abandoned" {
			t.Errorf("the call ends with %s", got)
		}
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		expect(t, "only the others", s, `id":1`, `id":3`)
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":3,"result":{}}`))
		third.wait(t)
	})
}

func TestWhoHasLeftBeforeItsTurnIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conv, _ := paced(t)
		ask(t, conv, callOf(1))
		gone := &departed{newReply()}
		conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, callOf(2))), gone)
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		if got := gone.wait(t); !strings.Contains(got, "its client left") {
			t.Errorf("the call ends with %s", got)
		}
		expect(t, "not that one", s, `id":1`)
	})
}

// departed is a reply that nobody will read.
type departed struct{ *reply }

func (*departed) Reachable() bool { return false }

func TestTheEndOfAConversationEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conv, q := paced(t)
		_, second := ask(t, conv, callOf(1)), ask(t, conv, callOf(2))
		conv.Close(errOver)
		if got := second.wait(t); !strings.Contains(got, errOver.Error()) {
			t.Errorf("the call ends with %s", got)
		}
		synctest.Wait()
		for range 2 {
			if !q.TryEnter(turns.Who{Session: new(int)}) {
				t.Error("a place is lost")
			}
		}
	})
}

// What opens a session takes a turn as well, for as long as it may take at all.
func TestSessionsAreOpenedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, other := turns.New(1), turns.Who{Principal: "somebody else"}
		q.TryEnter(other)
		s, done := &scripted{}, make(chan error)
		connect := func() { _, _, err := open(t, Options{Server: s, Opening: q}, newClient()); done <- err }
		go connect()
		synctest.Wait()
		if len(s.got) > 0 {
			t.Error("it has not waited")
		}
		q.Leave(other)
		if err := <-done; err != nil {
			t.Error(err)
		}
		q.TryEnter(other)
		go connect()
		if err := <-done; err == nil || !strings.Contains(err.Error(), "limits.concurrency") {
			t.Errorf("without a turn: %v", err)
		}
	})
}
