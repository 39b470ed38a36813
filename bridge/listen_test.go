package bridge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// announcer is an upstream whose listens a test holds in its hand.
type announcer struct {
	script
	opened chan *openListen
}

// openListen is one subscriptions/listen as the server sees it.
type openListen struct {
	call   *upstream.Call
	notify func(jsonrpc.Message)
	end    chan error
	closed chan struct{} // the bridge ended it
}

func (a *announcer) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	l := &openListen{call: call, notify: notify, end: make(chan error, 1), closed: make(chan struct{})}
	defer close(l.closed)
	a.opened <- l
	select {
	case err := <-l.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acknowledge accepts the filter as it was asked for.
func (l *openListen) acknowledge() {
	l.notify(jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":` + member(l.call, "notifications") + `}`)})
	synctest.Wait()
}

func (l *openListen) say(method, params string) {
	l.notify(jsonrpc.Message{Method: method, Params: []byte(params)})
}

// inbox records what is pushed to a client.
type inbox struct {
	mu       sync.Mutex
	got      []string
	accepted []downstream.Caller
	deaf     bool
	changes  int
}

func (i *inbox) End(error) {}

func (i *inbox) Detached(uint64, time.Time) {}

func (i *inbox) Changed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changes++
}

func (i *inbox) Reaches() bool { return !i.deaf }

func (i *inbox) Accepted(caller downstream.Caller) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.accepted = append(i.accepted, caller)
	return true
}

func (i *inbox) Push(_ string, msg downstream.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, string(msg.AppendTo(nil)))
}

func (i *inbox) take() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := strings.Join(i.got, "\n")
	i.got = nil
	return all
}

var announcing = &catalog.Server{Subscribe: true, Lists: catalog.Lists{Tools: true}, Version: string(mcp.V20260728)}

// listening returns a bridge whose upstream announces changes, and a way to
// open sessions on it.
func listening(t *testing.T) (*announcer, func() (*conversation, *inbox)) {
	up := &announcer{opened: make(chan *openListen, 8)}
	b := New(Options{Upstream: up, Log: zerolog.Nop()})
	t.Cleanup(b.Close)
	return up, func() (*conversation, *inbox) {
		box := &inbox{}
		conv := b.newConversation(mcp.V20251125, downstream.Caller{}, announcing, box)
		b.adopt(conv)
		return conv, box
	}
}

func TestListChangedListenIsShared_Q15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		one, oneBox := open()
		two, twoBox := open()
		one.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationInitialized})
		two.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationInitialized})
		l := <-up.opened
		l.acknowledge()
		if got := member(l.call, "notifications"); got != `{"toolsListChanged":true}` {
			t.Fatalf("C-13: %s", got)
		}
		l.say(mcp.NotificationToolsListChanged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`)
		l.say(mcp.NotificationPromptsListChanged, `{}`)
		want := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		if a, b := oneBox.take(), twoBox.take(); a != want || b != want {
			t.Fatalf("C-22: got %q and %q", a, b)
		}
		one.Close(nil)
		two.Close(nil)
		pass(31 * time.Second)
		<-l.closed // C-24
		if len(up.opened) != 0 {
			t.Fatal("more than one listen")
		}
	})
}

func TestGapIsAnnounced_C19_C20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		conv, box := open()
		hearing{conv}.announce(downstream.Caller{})
		l := <-up.opened
		l.acknowledge()
		if got := box.take(); got != "" {
			t.Fatalf("announced without a gap: %s", got)
		}
		l.end <- nil
		l = <-up.opened
		l.acknowledge()
		if got := box.take(); !strings.Contains(got, mcp.NotificationToolsListChanged) {
			t.Fatalf("C-20: %q", got)
		}
	})
}

func TestSubscribeWaitsForItsAcknowledgment_C14_C15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		conv, box := open()
		hearing{conv}.announce(downstream.Caller{})
		(<-up.opened).acknowledge()

		first := request(t, conv, "1", mcp.MethodResourcesSubscribe, `{"uri":"file:///a"}`)
		old := <-up.opened
		if first.ends != 0 {
			t.Fatal("C-15: answered before the acknowledgment")
		}
		old.acknowledge()
		first.result()

		second := request(t, conv, "2", mcp.MethodResourcesSubscribe, `{"uri":"file:///b"}`)
		next := <-up.opened
		if got := member(next.call, "notifications", "resourceSubscriptions"); got != `["file:///a","file:///b"]` {
			t.Fatalf("C-14: %s", got)
		}
		old.say(mcp.NotificationResourcesUpdated, `{"uri":"file:///a"}`) // make before break
		next.acknowledge()
		second.result()
		<-old.closed
		old.say(mcp.NotificationResourcesUpdated, `{"uri":"file:///late"}`)
		next.say(mcp.NotificationResourcesUpdated, `{"uri":"file:///b/part"}`)
		got := box.take()
		if !strings.Contains(got, "file:///a") || !strings.Contains(got, "file:///b/part") || strings.Contains(got, "late") {
			t.Fatalf("got %s", got)
		}

		gone := request(t, conv, "3", mcp.MethodResourcesUnsubscribe, `{"uri":"file:///a"}`)
		(<-up.opened).acknowledge()
		gone.result()
		request(t, conv, "4", mcp.MethodResourcesUnsubscribe, `{"uri":"file:///a"}`).result() // idempotent
	})
}

func TestRefusedSubscription_C17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		conv, _ := open()
		hearing{conv}.announce(downstream.Caller{})
		(<-up.opened).acknowledge()

		c := request(t, conv, "1", mcp.MethodResourcesSubscribe, `{"uri":"file:///a"}`)
		l := <-up.opened
		l.notify(jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":{}}`)})
		synctest.Wait()
		if e := c.rpcError(); e.Code != jsonrpc.CodeInvalidParams {
			t.Fatalf("code %d", e.Code)
		}
		<-l.closed

		c = request(t, conv, "2", mcp.MethodResourcesSubscribe, `{"uri":"file:///a"}`)
		(<-up.opened).end <- &upstream.Failure{Cause: upstream.Unreachable, Detail: "gone"}
		synctest.Wait()
		if e := c.rpcError(); e.Code != jsonrpc.CodeInternal {
			t.Fatalf("code %d", e.Code)
		}

		c = request(t, conv, "3", mcp.MethodResourcesSubscribe, `{"uri":"file:///a"}`)
		l = <-up.opened
		conv.Close(nil) // does not wait for an acknowledgment that may never come
		<-l.closed
		synctest.Wait()
		c.rpcError()
	})
}

func TestASessionThatEndsWhileItBeginsToListenIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		conv, _ := open()
		conv.Close(nil)
		hearing{conv}.listen("") // begun before the end
		l := <-up.opened
		pass(time.Minute)
		<-l.closed
	})
}

func TestClientsOfOneIdentityShareAListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &announcer{opened: make(chan *openListen, 8)}
		b := New(Options{Upstream: up, OneIdentity: true, Log: zerolog.Nop()})
		defer b.Close()
		for _, principal := range []string{"alice", "bob", ""} {
			hearing{b.newConversation(mcp.V20251125, downstream.Caller{Principal: principal}, announcing, &inbox{})}.announce(downstream.Caller{})
		}
		synctest.Wait()
		if n := len(up.opened); n != 1 {
			t.Errorf("%d listens at a server that cannot tell clients apart", n)
		}
	})
}

// Its client's address has used its share up by the time that it begins; then the server
// vouches for it.
func TestASessionThatGotNoListenHearsOnceItIsVouchedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &announcer{opened: make(chan *openListen, 64)}
		b := New(Options{Upstream: up, Limits: Limits{Listens: 16}, Log: zerolog.Nop()})
		defer b.Close()
		open := func(principal string) hearing {
			return hearing{b.newConversation(mcp.V20251125, downstream.Caller{Principal: principal}, announcing, &inbox{})}
		}
		for i := range 14 {
			open("made-up-" + strconv.Itoa(i)).announce(downstream.Caller{Tenant: "192.0.2.1"})
		}
		late := open("alice")
		listens := func(want int) {
			t.Helper()
			if synctest.Wait(); len(up.opened) != want {
				t.Errorf("%d listens, not %d", len(up.opened), want)
			}
		}
		late.announce(downstream.Caller{Tenant: "192.0.2.1"})
		late.announce(downstream.Caller{Tenant: "192.0.2.1"})
		listens(14)
		late.announce(downstream.Caller{Tenant: "alice"})
		late.announce(downstream.Caller{Tenant: "alice"})
		listens(15)
	})
}

// Tokens are renewed while their sessions last: what listens goes on with the newest.
func TestListensGoOnWithTheNewestCredentials_H2(t *testing.T) {
	refused := &upstream.Failure{Cause: upstream.Unauthorized, Status: 401}
	ada := func(token string) downstream.Caller {
		return downstream.Caller{Principal: "ada", Authorization: token}
	}
	ping := func(conv *conversation, caller downstream.Caller) {
		conv.Notify(caller, jsonrpc.Message{Method: mcp.NotificationInitialized})
	}
	begin := func(t *testing.T, opener downstream.Caller) (*announcer, *conversation) {
		up := &announcer{opened: make(chan *openListen, 8)}
		b := New(Options{Upstream: up, Log: zerolog.Nop()})
		t.Cleanup(b.Close)
		conv := b.newConversation(mcp.V20251125, opener, announcing, &inbox{})
		b.adopt(conv)
		ping(conv, opener)
		return up, conv
	}
	again := func(t *testing.T, up *announcer, l *openListen, want string) *openListen {
		t.Helper()
		l.end <- refused
		if l = <-up.opened; l.call.Authorization != want {
			t.Fatalf("opened again with %q, not %q", l.call.Authorization, want)
		}
		return l
	}
	t.Run("list changes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			up, conv := begin(t, ada("t1"))
			l := <-up.opened
			l.acknowledge()
			forged := ada("t0")
			forged.Unproven = true
			ping(conv, forged)
			l = again(t, up, l, "t1")
			ping(conv, ada("t2"))
			l = again(t, up, l, "t2")
			l.acknowledge()
			ping(conv, ada("t1")) // a request that was late
			l = again(t, up, l, "t1")
			again(t, up, l, "t2") // which works where the other one was refused
		})
	})
	t.Run("with a token that the server has just accepted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			up, conv := begin(t, ada("t1"))
			l := <-up.opened
			conv.Reauthorize("t2")
			began := time.Now()
			again(t, up, l, "t2")
			if waited := time.Since(began); waited > 3*time.Second {
				t.Errorf("opened again after %v", waited)
			}
		})
	})
	t.Run("at once where a refused listen waits for it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			up, conv := begin(t, ada("t1"))
			l := <-up.opened
			for range 8 {
				l = again(t, up, l, "t1")
			}
			l.end <- refused
			pass(5 * time.Second)
			began := time.Now()
			ping(conv, ada("t2"))
			if l = <-up.opened; l.call.Authorization != "t2" || time.Since(began) > 0 {
				t.Errorf("opened again with %q, after %v", l.call.Authorization, time.Since(began))
			}
		})
	})
	t.Run("resources", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			up, conv := begin(t, ada("t1"))
			(<-up.opened).acknowledge()
			c := &client{t: t, conv: conv}
			go conv.Serve(context.Background(), ada("t1"), downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodResourcesSubscribe, Params: []byte(`{"uri":"file:///a"}`)}), c)
			l := <-up.opened
			l.acknowledge()
			c.result()
			ping(conv, ada("t2"))
			again(t, up, l, "t2")
		})
	})
	t.Run("not for others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			up, conv := begin(t, downstream.Caller{})
			l := <-up.opened
			ping(conv, ada("t1")) // who opened the session without credentials has signed in
			again(t, up, l, "")   // what all share who have none
		})
	})
}

// P-6: URIs that differ in half a character are those of other resources, and go both ways as they are.
func TestSubscriptionsAreOfOneResource_C14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		conv, box := open()
		hearing{conv}.announce(downstream.Caller{})
		(<-up.opened).acknowledge()

		for i, want := range []string{`["x:\ud800"]`, `["x:\ud800","x:\ud801"]`} {
			one := request(t, conv, fmt.Sprint(i), mcp.MethodResourcesSubscribe, fmt.Sprintf(`{"uri":"x:\ud80%d"}`, i))
			listen := <-up.opened
			if got := member(listen.call, "notifications", "resourceSubscriptions"); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			listen.acknowledge()
			one.result()
		}
		if got, err := readRecord(conv.Record()); err != nil || !slices.Equal(got.Resources, names{"x:\xed\xa0\x80", "x:\xed\xa0\x81"}) {
			t.Errorf("%q are kept, %v", got.Resources, err)
		}
		gone := request(t, conv, "3", mcp.MethodResourcesUnsubscribe, `{"uri":"x:\ud800"}`)
		last := <-up.opened
		last.acknowledge()
		gone.result()
		if got := member(last.call, "notifications", "resourceSubscriptions"); got != `["x:\ud801"]` {
			t.Errorf("what is left is %s", got)
		}
		box.take()
		last.say(mcp.NotificationResourcesUpdated, `{"uri":"x:\ud801"}`)
		if got := box.take(); !strings.Contains(got, `x:\ud801`) {
			t.Errorf("got %s", got)
		}
	})
}
