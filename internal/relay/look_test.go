package relay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/observe"
)

// glance says in words what there is to see of a conversation's calls.
func glance(conv downstream.Conversation) string {
	var seen []string
	for _, f := range conv.Look().Flows {
		s := fmt.Sprintf("%s %s %s waits for the %s since %v of %v", f.ID, f.Method, f.Name, f.Waits, time.Since(f.Since), time.Until(f.Deadline))
		for _, q := range f.Questions {
			s += fmt.Sprintf(", asked for a %s (proven: %t)", q.Kind, q.Proven)
		}
		seen = append(seen, s)
	}
	return strings.Join(seen, "\n")
}

// Who looked was told that nothing waits while calls of relayed sessions did.
func TestRelayedCallsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conv := converse(t, newClient())
		defer conv.Close(nil)
		if got := glance(conv); got != "" {
			t.Errorf("of a session without calls one sees\n%s", got)
		}
		out := ask(t, conv, aCall)
		expect := func(when, want string) {
			t.Helper()
			if got := glance(conv); got != want {
				t.Errorf("%s one sees\n%s\nwant\n%s", when, got, want)
			}
		}
		time.Sleep(2 * time.Second)
		expect("of a call", "f2 tools/call x waits for the server since 2s of 29m58s")
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`))
		time.Sleep(time.Second)
		expect("of one that makes progress", "f2 tools/call x waits for the server since 1s of 29m57s")
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","mode":"url"}}`))
		time.Sleep(time.Second)
		expect("of one that asks", "f2 tools/call x waits for the client since 1s of 29m56s, asked for a url (proven: false)")
		if err := conv.Answer(downstream.Caller{}, message(t, `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`)); err != nil {
			t.Fatal(err)
		}
		expect("of one that was answered", "f2 tools/call x waits for the server since 0s of 29m56s")
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":{}}`))
		expect("of one that asks again", "f2 tools/call x waits for the client since 0s of 29m56s, asked for a sampling (proven: true)")
		s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"a","result":{}}`))
		out.wait(t)
		expect("of one that has ended", "")
	})
}

// A server that withdraws its question goes on with the call by itself, which nobody's answer holds up any more.
func TestAQuestionThatItsServerWithdrewIsNotWaitedFor(t *testing.T) {
	for name, reachable := range map[string]bool{"on the stream of its call": true, "on that of the session": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, conv := converse(t, newClient())
				defer conv.Close(nil)
				out := ask(t, conv, aCall)
				for _, id := range []string{`"q"`, `"r"`} {
					s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"sampling/createMessage","params":{}}`))
				}
				out.gone = !reachable
				s.inbox.Receive([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q","reason":"no longer needed"}}`))
				if f := conv.Look().Flows[0]; f.Waits != observe.ForClient || len(f.Questions) != 1 || f.Questions[0].Proven {
					t.Errorf("with another question the call waits for the %s, with %+v", f.Waits, f.Questions)
				}
				s.inbox.Receive([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r"}}`))
				if f := conv.Look().Flows[0]; f.Waits != observe.ForServer || len(f.Questions) > 0 {
					t.Errorf("without one the call waits for the %s, with %+v", f.Waits, f.Questions)
				}
				s.inbox.Unanswered(`"q"`, errEnded) // the client was quicker, and what it said got lost
				if len(conv.Look().Flows) != 1 {
					t.Errorf("without an answer that nobody wants the call ends with %s", out.final)
				}
			})
		})
	}
}

func TestARelayedCallCanBeEnded(t *testing.T) {
	s, conv := converse(t, newClient())
	out := ask(t, conv, aCall)
	id := conv.Look().Flows[0].ID
	if conv.EndCall("f0") || !conv.EndCall(id) || conv.EndCall(id) {
		t.Error("not this call was ended, or it twice")
	}
	if got := out.wait(t); !strings.Contains(got, "ended by who runs the bridge; whether the call was executed is not known") {
		t.Errorf("the client gets %s", got)
	}
	if got := s.last(); !strings.Contains(got, `"requestId":"a"`) || !strings.Contains(got, "notifications/cancelled") {
		t.Errorf("the server gets %s", got)
	}
}

func TestWhatIsKeptOfAClientIsShort(t *testing.T) {
	long, caps := strings.Repeat("n", 1<<10), map[string]any{}
	for i := range 100 {
		caps[fmt.Sprint(long, i)] = struct{}{}
	}
	params, err := json.Marshal(map[string]any{"clientInfo": map[string]any{"name": long, "version": long, "title": long}, "capabilities": caps})
	if err != nil {
		t.Fatal(err)
	}
	w := whoseOf(params)
	if len(w.info) > 300 || len(w.declared) > 2000 || !json.Valid(w.info) || !json.Valid(w.declared) {
		t.Errorf("%d bytes %s and %d bytes %s", len(w.info), w.info, len(w.declared), w.declared)
	}
	w = whoseOf([]byte(`{"clientInfo":{"name":"desk","version":"1"},"capabilities":{"elicitation":{},"roots":{"listChanged":true}}}`))
	if got := string(w.info) + string(w.declared); got != `{"name":"desk","version":"1"}{"elicitation":{},"roots":{}}` {
		t.Errorf("kept is %s", got)
	}
	if w = whoseOf(nil); string(w.info) != `{"name":"","version":""}` || string(w.declared) != "{}" {
		t.Errorf("of nothing is kept %s %s", w.info, w.declared)
	}
}
