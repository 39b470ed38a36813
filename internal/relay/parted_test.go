package relay

import (
	"context"
	"errors"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// heldUp is a server that takes messages of one method only when it may.
type heldUp struct {
	*scripted
	method string
	may    chan struct{}
	once   sync.Once
}

func (h *heldUp) Connect(_ downstream.Caller, inbox Inbox) (Line, error) {
	h.inbox = inbox
	return h, nil
}

func (h *heldUp) Send(caller downstream.Caller, msg *jsonrpc.Message, text []byte) error {
	if msg.Method == h.method {
		<-h.may
	}
	return h.scripted.Send(caller, msg, text)
}

func (h *heldUp) goOn() { h.once.Do(func() { close(h.may) }) }

func (h *heldUp) Close() { h.goOn(); h.scripted.Close() }

// hold is a conversation with one.
func hold(t *testing.T, method string) (*heldUp, downstream.Conversation) {
	t.Helper()
	h := &heldUp{scripted: &scripted{}, method: method, may: make(chan struct{})}
	conv, _, err := open(t, Options{Server: h, Call: time.Minute}, newClient())
	if err != nil {
		t.Fatal(err)
	}
	return h, conv
}

// wantGot wants the server to have got messages with these methods, in order.
func (s *scripted) wantGot(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, text := range s.got[1:] {
		got = append(got, message(t, text).Method)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s the server got %q, want %q", when, got, want)
	}
}

const (
	call   = mcp.MethodToolsCall
	cancel = mcp.NotificationCancelled
)

// quick is the reply to a client that uses the id again at once.
type quick struct {
	*reply
	again func()
}

func (q *quick) Finish(msg downstream.Message) {
	q.again()
	q.reply.Finish(msg)
}

// What ends a call for a reason of the bridge's own has the server told: of that call, whatever its client does with the id as soon as it knows.
func TestACallThatTheBridgeEndsIsNotTheNextOneWithItsID_B1(t *testing.T) {
	for name, end := range map[string]func(*scripted, downstream.Conversation){
		"ended by an operator": func(_ *scripted, conv downstream.Conversation) { conv.EndCall(conv.Look().Flows[0].ID) },
		"timed out":            func(*scripted, downstream.Conversation) { time.Sleep(time.Minute) },
		"an answer got lost": func(s *scripted, _ downstream.Conversation) {
			s.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`))
			s.inbox.Unanswered(`"q"`, errEnded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, conv := hold(t, "")
				first, second := newReply(), (*reply)(nil)
				q := &quick{first, func() { second = ask(t, conv, aCall) }}
				conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, aCall)), q)
				end(h.scripted, conv)
				first.wait(t)
				h.wantGot(t, "of both calls", call, cancel, call)
				h.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":"a","result":{}}`))
				if got := second.wait(t); !strings.Contains(got, "result") {
					t.Errorf("the second one ends with %s", got)
				}
			})
		})
	}
}

// A server that reads nothing does not keep a client from hearing that its call has timed out.
func TestACallEndsThoughItsServerTakesNoCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, conv := hold(t, cancel)
		out := ask(t, conv, aCall)
		time.Sleep(time.Minute + lastWord)
		synctest.Wait()
		select {
		case <-out.done:
		default:
			t.Fatal("the client waits")
		}
		if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "already under way") {
			t.Errorf("with an id that may be cancelled yet a client gets %s", got)
		}
		h.goOn()
		h.wantGot(t, "later", call, cancel)
		ask(t, conv, aCall)
		h.wantGot(t, "then", call, cancel, call)
	})
}

// Nor does such a server keep a conversation from being closed.
func TestAConversationEndsThoughItsServerTakesNoCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conv := hold(t, cancel)
		out := ask(t, conv, aCall)
		go conv.EndCall(conv.Look().Flows[0].ID)
		synctest.Wait()
		began := time.Now()
		conv.Close(errors.New("over"))
		if out.wait(t); time.Since(began) > 0 {
			t.Errorf("the client hears of it after %v", time.Since(began))
		}
	})
}

// The cancellation of a call that is on its way to the server stays behind it, and before the next one with that id.
func TestACallIsNotOvertakenByItsCancellation(t *testing.T) {
	for name, end := range map[string]func(conv downstream.Conversation){
		"ended by an operator": func(conv downstream.Conversation) { conv.EndCall(conv.Look().Flows[0].ID) },
		"timed out":            func(downstream.Conversation) { time.Sleep(time.Minute) },
		"cancelled": func(conv downstream.Conversation) {
			conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: cancel, Params: []byte(`{"requestId":"a"}`)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, conv := hold(t, call)
				out := newReply()
				go conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, aCall)), out)
				synctest.Wait()
				end(conv)
				got := out.wait(t)
				if strings.HasPrefix(name, "ended") && !strings.Contains(got, "not known") {
					t.Errorf("of a call that may be executed it is said: %s", got)
				}
				go ask(t, conv, aCall)
				h.wantGot(t, "before")
				h.goOn()
				h.wantGot(t, "then", call, cancel, call)
			})
		})
	}
}

// lingering is a transport whose requests are written at once, and end when they may, or are cut off.
type lingering struct{ ends chan chan struct{} }

func (l lingering) request(ctx context.Context, _ *outgoing) {
	end := make(chan struct{})
	l.ends <- end
	httptrace.ContextClientTrace(ctx).WroteRequest(httptrace.WroteRequestInfo{})
	select {
	case <-end:
	case <-ctx.Done():
	}
}

func (lingering) hand(context.Context, *outgoing) error { return nil }
func (lingering) untaken(*outgoing, error)              {}

// The end of a request, of which its client has known for a moment, is not that of the next one with its id.
func TestARequestCanBeCutOffThoughItsIDWasUsedBefore_B1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lingering{make(chan chan struct{}, 2)}
		c := newCourier(l, nil)
		defer c.Close()
		for range 2 {
			msg := message(t, aCall)
			if err := c.Send(downstream.Caller{}, &msg, nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		close(<-l.ends)
		synctest.Wait()
		if c.calls[`"a"`] == nil {
			t.Error("the second request is not known")
		}
		c.forget(`"a"`)
		synctest.Wait()
		if len(c.calls) > 0 {
			t.Error("it is still under way")
		}
	})
}
