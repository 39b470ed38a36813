//go:build linux

package legacy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

func TestParkedCallGoesOnAndItsConnectionServesFurtherRequests(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l := dialWire(t, p)
	for round := 1; round <= 3; round++ {
		l.send(p.request(http.MethodPost, hold))
		k := <-b.held
		k.Send([]byte(note))
		resp := l.response()
		waitParked(t, h, 1, 0)
		k.Send([]byte(`{"n":1}`))
		k.finish(`{"done":true}`)
		want(t, "events", readEvents(t, resp).rest(), []string{
			fmt.Sprintf("%d-1|%s", round, note), fmt.Sprintf(`%d-2|{"n":1}`, round),
			fmt.Sprintf(`%d-3|{"jsonrpc":"2.0","id":1,"result":{"done":true}}`, round),
		})
		waitParked(t, h, 0, 1)
		l.send(p.request(http.MethodPost, ping))
		want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	}
}

func TestParkedGetDeliversResumesAndReplays_E21(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	conv := b.last()
	_, resp := heldGet(t, h, p, "")
	ev := readEvents(t, resp)
	want(t, "priming", ev.next(), "0-1|")
	conv.push.Push("k", []byte(`{"n":1}`))
	want(t, "live", ev.next(), `0-2|{"n":1}`)
	conv.push.Push("k", []byte(`{"n":2}`))
	want(t, "the first one gets it as well", ev.next(), `0-3|{"n":2}`) // before the takeover, which may overtake what was not written yet
	_, resp2 := heldGet(t, h, p, "0-2")                                // takes over, and is parked in its turn
	ev2 := readEvents(t, resp2)
	want(t, "the first one ended", ev.rest(), []string{})
	want(t, "replay", ev2.next(), `0-3|{"n":2}`)
	conv.push.Push("k", []byte(`{"n":3}`))
	want(t, "live again", ev2.next(), `0-4|{"n":3}`)
}

func TestReplacedStreamsConnectionServesFurtherRequests_A31(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp := heldGet(t, h, p, "")
	_ = p.get("")
	want(t, "nothing", readEvents(t, resp).rest(), []string{})
	l.send(p.request(http.MethodPost, ping))
	want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
}

func TestHangUpOfAParkedCallIsNoCancellation_E12_E20(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	l, _, k := heldCall(t, h, p, b)
	s := p.live(h)
	st := s.Streams().Find(1)
	l.conn.Close()
	eventually(t, "the hang-up is noticed", func() bool { return !st.Attached() })
	waitParked(t, h, 0, 0)
	want(t, "conversation", b.last().cause(), error(nil))
	want(t, "busy", s.Busy(), true)
	k.Send([]byte(`{"n":1}`))
	k.finish(`{"late":true}`)
	want(t, "resumed", readEvents(t, p.get("1-2")).rest(), []string{
		`1-3|{"n":1}`, `1-4|{"jsonrpc":"2.0","id":1,"result":{"late":true}}`,
	})
}

func TestHangUpOfAParkedGetFreesItsSession_A33(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, _ := heldGet(t, h, p, "")
	s := p.live(h)
	want(t, "busy while it listens", s.Busy(), true)
	l.conn.Close()
	eventually(t, "the session is idle", func() bool { return !s.Busy() })
	b.last().push.Push("k", []byte(`{"kept":1}`))
	_, resp := heldGet(t, h, p, "")
	want(t, "kept for the next one", readEvents(t, resp).next(), `0-1|{"kept":1}`)
}

func TestRequestSentAheadIsServedAfterTheStream(t *testing.T) {
	for name, early := range map[string]bool{"with the call": true, "while it is parked": false} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			h, p := serve(t, Options{}, b)
			p.initialize(mcp.V20250618)
			l := dialWire(t, p)
			call, next := p.request(http.MethodPost, hold), []*http.Request{p.request(http.MethodPost, ping), p.request(http.MethodPost, ping)}
			if early {
				l.send(call, next[0], next[1])
			} else {
				l.send(call)
			}
			k := <-b.held
			k.Send([]byte(note))
			resp := l.response()
			waitParked(t, h, 1, 0)
			if !early {
				l.send(next...)
			}
			k.finish(`{}`)
			want(t, "events", len(readEvents(t, resp).rest()), 2)
			for range next {
				want(t, "next", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
			}
			// A connection that was read ahead is parked as well.
			l.send(p.request(http.MethodPost, hold))
			k = <-b.held
			k.Send([]byte(note))
			resp = l.response()
			waitParked(t, h, 1, 0)
			k.finish(`{}`)
			want(t, "again", len(readEvents(t, resp).rest()), 2)
		})
	}
}

func TestConnectionIsClosedWhenTheClientWantsIt(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l := dialWire(t, p)
	r := p.request(http.MethodPost, hold)
	r.Close = true
	l.send(r)
	k := <-b.held
	k.Send([]byte(note))
	resp := l.response()
	waitParked(t, h, 1, 0)
	k.finish(`{}`)
	want(t, "events", len(readEvents(t, resp).rest()), 2)
	want(t, "closed", l.closed(), true)
	waitParked(t, h, 0, 0)
}

func TestAbandonedParkedCallEndsItsResponse(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp, k := heldCall(t, h, p, b)
	k.Abandon()
	want(t, "no response", readEvents(t, resp).rest(), []string{"1-1|" + note})
	l.send(p.request(http.MethodPost, ping))
	want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
}

func TestDeleteEndsParkedStreams_A30(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	_, call, _ := heldCall(t, h, p, b)
	_, get := heldGet(t, h, p, "")
	want(t, "status", p.do(p.request(http.MethodDelete, "")).StatusCode, 204)
	want(t, "call", readEvents(t, call).rest(), []string{"1-1|" + note})
	want(t, "GET", readEvents(t, get).rest(), []string{})
	waitParked(t, h, 0, 2)
}

// stuck is a backend that keeps the goroutine of the request, as a call upstream does.
type stuck struct {
	*fakeBackend
	free chan struct{}
}

func (b stuck) Stateless(c downstream.Caller, v mcp.Version) downstream.Conversation {
	return stuckConv{b.fakeBackend.Stateless(c, v), b.free}
}

func (b stuck) Open(ctx context.Context, c downstream.Caller, req jsonrpc.Message, p downstream.Pusher) (downstream.Conversation, []byte, error) {
	conv, result, err := b.fakeBackend.Open(ctx, c, req, p)
	return stuckConv{conv, b.free}, result, err
}

type stuckConv struct {
	downstream.Conversation
	free chan struct{}
}

func (c stuckConv) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	c.Conversation.Serve(ctx, caller, req, out)
	<-c.free
}

func TestClientThatLeftBeforeTheFirstByteIsNotReachable_E23(t *testing.T) {
	for name, first := range map[string]func(*call){
		"the head":   func(*call) {},
		"a question": func(k *call) { k.Send([]byte(note)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := stuck{newFake(), make(chan struct{})}
			opt := Options{CommitDelay: janitorStep}
			if name == "a question" {
				opt.CommitDelay = time.Hour
			}
			_, p := serve(t, opt, b)
			p.initialize(mcp.V20251125)
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.request(http.MethodPost, hold).Write(conn); err != nil {
				t.Fatal(err)
			}
			k := <-b.held
			_ = conn.Close()
			first(k)
			eventually(t, "it is noticed", func() bool { return !k.Reachable() })
			k.finish(`{}`)
			close(b.free)
		})
	}
}
