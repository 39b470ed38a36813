package tap

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/upstream"
)

// peer plays the bridge and the server: it asks once, then answers. What it says is
// a secret.
type peer struct {
	downstream.Conversation
	up     upstream.Caller
	secret string
	out    downstream.Reply
}

func (p *peer) Version() mcp.Version { return mcp.V20250618 }

func (p *peer) Look() observe.Conversation { return observe.Conversation{Version: mcp.V20250618} }

func (p *peer) Watch(func(observe.Flow, downstream.Reply) downstream.Reply) {}

func (p *peer) Serve(ctx context.Context, _ downstream.Caller, req downstream.Request, out downstream.Reply) {
	p.out = out
	_, _ = p.up.Do(ctx, &upstream.Call{Method: req.Method, Params: req.Params, Origin: out}, func(jsonrpc.Message) {})
	out.Queue(downstream.Notification(mcp.NotificationMessage, []byte(quoted(p.secret))))
	out.Send(downstream.Question(`"b-1234567890SECRET"`, mcp.MethodElicitationCreate, []byte(quoted(p.secret))))
}

func (p *peer) Answer(downstream.Caller, jsonrpc.Message) error {
	p.out.Finish(downstream.Result("1", []byte(quoted(p.secret))))
	return nil
}

func (p *peer) Notify(downstream.Caller, jsonrpc.Message) {}

func (p *peer) Knows(downstream.Caller, jsonrpc.ID) bool { return false }

func (p *peer) Owns(downstream.Caller, []byte) bool { return false }

// opening is a backend whose sessions are one peer's.
type opening struct {
	downstream.Backend
	conv *peer
}

func (o opening) Open(context.Context, downstream.Caller, jsonrpc.Message, downstream.Pusher) (downstream.Conversation, []byte, error) {
	return o.conv, nil, nil
}

// serving is a server that answers at once.
type serving struct {
	upstream.Caller
	secret string
}

func (s serving) Do(_ context.Context, _ *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	notify(jsonrpc.Message{Method: mcp.NotificationProgress, Params: []byte(quoted(s.secret))})
	return &upstream.Answer{Result: []byte(quoted(s.secret))}, nil
}

func quoted(text string) string { q, _ := json.Marshal(text); return string(q) }

// sink takes what goes to the client.
type sink struct{ downstream.Reply }

func (sink) Send(downstream.Message)   {}
func (sink) Queue(downstream.Message)  {}
func (sink) Finish(downstream.Message) {}

// nobody counts nothing.
type nobody struct{ observe.Watcher }

func (nobody) SessionOpened(string, mcp.Version) {}
func (nobody) CallEnded(observe.CallEnd)         {}
func (nobody) RequestEnded(observe.Request)      {}

// talk makes a call with a question through a tap and returns its session's number.
func talk(t interface{ Fatal(...any) }, tp *Tap, secret string) uint64 {
	p := &peer{secret: secret, up: tp.Caller(serving{secret: secret}, nobody{})}
	conv, _, err := tp.Backend(opening{conv: p}, nobody{}).Open(context.Background(), downstream.Caller{}, jsonrpc.Message{Method: mcp.MethodInitialize}, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(`{"arguments":` + quoted(secret) + `}`)})
	conv.Serve(context.Background(), downstream.Caller{Authorization: secret}, req, sink{})
	_ = conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: `"b-1234567890SECRET"`, Result: []byte(quoted(secret))})
	conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationInitialized, Params: []byte(quoted(secret))})
	return conv.Look().Number
}

func TestBothHopsOfACallAreSeen(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	tp.Look(time.Minute)
	var got []string
	for _, e := range tp.Of(talk(t, tp, "x"), kept) {
		hop := "down"
		if e.Hop == observe.Upstream {
			hop = "up"
		}
		if e.Out {
			hop += " out"
		}
		got = append(got, strings.TrimSpace(hop+" "+e.Kind+" "+e.Status))
	}
	want := []string{"down request", "down out response complete", "down request", "up out request", "up notification", "up response complete", "down out notification", "down out question",
		"down answer result", "down out response complete", "down notification"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestNothingIsKeptWhenNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
		defer tp.Close()
		if n := len(tp.Of(talk(t, tp, "x"), kept)); n != 0 {
			t.Errorf("%d events before anybody looked", n)
		}
		tp.Look(time.Minute)
		time.Sleep(50 * time.Second)
		tp.Look(time.Minute)
		time.Sleep(50 * time.Second)
		if n := len(tp.Of(talk(t, tp, "x"), kept)); n == 0 {
			t.Error("nothing is kept although somebody looked again")
		}
		time.Sleep(11 * time.Second)
		if n := len(tp.Of(talk(t, tp, "x"), kept)); n != 0 {
			t.Errorf("%d events after everybody left", n)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	tp.Look(time.Minute)
	for range 2 * kept {
		tp.note(observe.Event{Session: 7, Method: strings.Repeat("m", 1000)})
	}
	all := tp.Of(7, 3*kept)
	if len(all) != kept || len(all[0].Method) > maxText+len("…") || all[0].Seq != kept+1 {
		t.Errorf("%d events of %d bytes, the oldest is number %d", len(all), len(all[0].Method), all[0].Seq)
	}
}

// TestNothingThatMessagesSayIsKept: of no input anything but names and sizes is kept.
func TestNothingThatMessagesSayIsKept(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	tp.Look(time.Minute)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9 "\\<>]{12,200}`).Draw(t, "secret")
		kept, _ := json.Marshal(tp.Of(talk(t, tp, secret), kept))
		if strings.Contains(string(kept), secret) || strings.Contains(string(kept), strings.Trim(quoted(secret), `"`)) || strings.Contains(string(kept), "SECRET") {
			t.Fatalf("a secret is in %s", kept)
		}
	})
}

// TestWhatIsKeptForThoseWhoLookIsSmallAndGoesWithThem: clients have the memory, whoever looks.
func TestWhatIsKeptForThoseWhoLookIsSmallAndGoesWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory = 32 << 20
		tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
		defer tp.Close()
		tp.Within(memory)
		held := func() (bytes int) {
			tp.mu.Lock()
			defer tp.mu.Unlock()
			for i := range tp.ring {
				bytes += len(tp.ring[i].Body)
			}
			return bytes
		}
		tp.Look(time.Minute)
		for range 100 {
			tp.note(observe.Event{Session: 7, Body: make([]byte, 100<<10)})
		}
		if n := held(); n == 0 || n > memory/share {
			t.Errorf("%d bytes are kept beside %d of clients", n, memory)
		}
		time.Sleep(time.Minute + time.Second)
		if n := held(); n != 0 || tp.ring != nil {
			t.Errorf("%d bytes are kept when nobody looks any more", n)
		}
		tp.Look(time.Minute)
		tp.note(observe.Event{Session: 7, Body: []byte("x")})
		if all := tp.Of(7, kept); len(all) != 1 || string(all[0].Body) != "x" {
			t.Errorf("when somebody looks again: %d events", len(all))
		}
	})
}

// TestWhatIsKeptOfALargeMessageHoldsNoMoreThanItSays: its own memory is a client's again.
func TestWhatIsKeptOfALargeMessageHoldsNoMoreThanItSays(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	tp.Look(time.Minute)
	body := tp.body(&jsonrpc.Message{ID: "1", Method: "tools/call", Params: []byte(`{"text":"` + strings.Repeat("x", 100<<10) + `"}`)})
	if len(body) == 0 || cap(body) > 2*len(body) {
		t.Errorf("%d bytes are kept for %d", cap(body), len(body))
	}
}
