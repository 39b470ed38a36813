package legacy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/mcp"
)

func TestSharedChannelsRefuseDuplicateIDs_B1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
		k := <-b.held
		l.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		if got := l.next(); !strings.Contains(got, "-32600") || !strings.Contains(got, `"id":1,`) {
			t.Errorf("got %s", got)
		}
		l.send(`{"jsonrpc":"2.0","id":"1","method":"echo"}`) // another type, another id (P-8)
		want(t, "string id", l.next(), `{"jsonrpc":"2.0","id":"1","result":{}}`)
		k.finish(`{"first":1}`)
		want(t, "first", l.next(), `{"jsonrpc":"2.0","id":1,"result":{"first":1}}`)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		want(t, "free again", l.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

func TestRequestsBeforeInitialize_A7_A9_A11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serveStdio(t, Options{}, newFake())
		for msg, answer := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`:            `"result":{}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`:      "-32600",
			`{"jsonrpc":"2.0","id":3,"method":"server/discover"}`: "-32601",
			`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`: "-32601",
		} {
			l.send(msg)
			if got := l.next(); !strings.Contains(got, answer) {
				t.Errorf("%s\n got %s\nwant %s", msg, got, answer)
			}
		}
	})
}

// slowBackend opens sessions only when told.
type slowBackend struct {
	*fakeBackend
	proceed chan struct{}
}

func (b *slowBackend) Open(ctx context.Context, c downstream.Caller, req jsonrpc.Message, p downstream.Pusher) (downstream.Conversation, []byte, error) {
	select {
	case <-b.proceed:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	return b.fakeBackend.Open(ctx, c, req, p)
}

func TestRequestsQueueBehindInitialize_A7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slowBackend{newFake(), make(chan struct{})}
		l := serveStdio(t, Options{MaxPending: 4}, b)
		l.send(initialize(mcp.V20250326))
		l.send(`[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","id":2,"method":"echo"}]`)
		l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		l.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		want(t, "ping is answered meanwhile (A-9)", l.next(), `{"jsonrpc":"2.0","id":3,"result":{}}`)
		synctest.Wait()
		close(b.proceed)
		if got := l.next(); !strings.Contains(got, "protocolVersion") {
			t.Errorf("initialize: %s", got)
		}
		if got := l.next(); !strings.HasPrefix(got, "[") || !strings.Contains(got, `"id":1`) || !strings.Contains(got, `"id":2`) {
			t.Errorf("batch: %s", got)
		}
		synctest.Wait()
		want(t, "notified", b.last().notified, []string{"notifications/initialized"})
	})
}

func TestEndDuringInitializeLeavesNothing_A36(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slowBackend{newFake(), make(chan struct{})}
		l := serveStdio(t, Options{}, b)
		l.send(initialize(mcp.V20251125))
		_ = l.in.Close()
		want(t, "answer", l.next(), `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"the connection ended before the server had answered","data":{"bridge":{}}}}`)
		want(t, "returns", <-l.done, error(nil))
	})
}

// Gateways hand one connection to several clients, one after the other.
func TestRepeatedInitializeBeginsAnew_A4(t *testing.T) {
	for name, before := range map[string]func(*line, *fakeBackend){
		"at once":           func(*line, *fakeBackend) {},
		"after initialized": func(l *line, _ *fakeBackend) { l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) },
		"after a call": func(l *line, _ *fakeBackend) {
			l.send(ping)
			_ = l.next()
		},
		"during a call": func(l *line, b *fakeBackend) {
			l.send(hold)
			<-b.held
		},
		"during a call that ends with its session": func(l *line, b *fakeBackend) {
			l.send(hold)
			k := <-b.held
			b.last().ending = func() { k.finish(`{"ended":true}`) }
		},
		"during an array, a part of which is answered": func(l *line, b *fakeBackend) {
			l.send("[" + ping + `,{"jsonrpc":"2.0","id":9,"method":"hold","params":{}}]`)
			<-b.held
		},
		"during a call that is not given up": func(l *line, b *fakeBackend) {
			l.send(hold)
			k := <-b.held
			b.last().open = nil
			go func() {
				time.Sleep(time.Second)
				k.finish(`{"late":true}`)
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake()
				l := serveStdio(t, Options{}, b)
				l.initialize(mcp.V20250326)
				first := b.last()
				before(l, b)
				synctest.Wait()
				l.initialize(mcp.V20251125)
				want(t, "the first conversation", first.cause(), channel.ErrAgain)
				l.send(hold) // the id is free again, whoever had it
				second := <-b.held
				first.push.Push("k", []byte(`{"method":"late"}`)) // nothing of it is for the next client
				first.push.End(errors.New("its server is gone"))
				time.Sleep(time.Minute)
				second.finish(`{"second":true}`)
				want(t, "answer", l.next(), `{"jsonrpc":"2.0","id":1,"result":{"second":true}}`)
				want(t, "the session goes on", b.last().cause(), error(nil))
			})
		})
	}
}

// The same where the connection is the session: it ends with the last answer, or when that
// takes too long.
func TestAConnectionLastsForItsCallsWhenItsServerGoes(t *testing.T) {
	for name, answered := range map[string]bool{"they are answered": true, "they take too long": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake()
				l := serveStdio(t, Options{}, b)
				l.initialize(mcp.V20250618)
				conv := b.last()
				l.send(hold)
				k := <-b.held
				conv.push.End(errors.New("its server is another one"))
				l.send(`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
				if got := l.next(); !strings.Contains(got, `"id":2,"error"`) {
					t.Errorf("another request gets %s", got)
				}
				time.Sleep(20 * time.Second)
				want(t, "it goes on", conv.cause(), error(nil))
				if answered {
					k.finish(`{"late":true}`)
					want(t, "answer", l.next(), `{"jsonrpc":"2.0","id":1,"result":{"late":true}}`)
				} else {
					time.Sleep(20 * time.Second)
					want(t, "cause", conv.cause(), downstream.ErrOutdated)
				}
				if err := <-l.done; err == nil {
					t.Error("the connection ends without a reason")
				}
			})
		})
	}
}

func TestInitializeBehindAnotherOneWaitsForIt_A4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slowBackend{newFake(), make(chan struct{})}
		l := serveStdio(t, Options{}, b)
		l.send(initialize(mcp.V20250326))
		l.send(initialize(mcp.V20251125))
		l.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		synctest.Wait()
		close(b.proceed)
		for _, part := range []string{"2025-03-26", "2025-11-25", `"id":1`} {
			if got := l.next(); !strings.Contains(got, part) {
				t.Errorf("%s, want %s", got, part)
			}
		}
		want(t, "the first conversation", b.convs[0].cause(), channel.ErrAgain)
	})
}

func TestFailedInitializeOnAChannel_A23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.open = func(downstream.Caller, jsonrpc.Message) error { return &downstream.Refusal{Status: 401} }
		l := serveStdio(t, Options{}, b)
		l.send(initialize(mcp.V20251125))
		if got := l.next(); !strings.Contains(got, "-32603") || !strings.Contains(got, "(HTTP 401): start the bridge with --auth.mode agent") {
			t.Errorf("got %s", got)
		}
	})
}

func TestBadLinesAreAnsweredWhenAllowedAndNothingStops_E32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for version, idless := range map[mcp.Version]bool{mcp.V20251125: true, mcp.V20250618: false} {
			l := serveStdio(t, Options{MaxBody: 300}, newFake())
			l.initialize(version)
			l.send(`not JSON`)
			if idless {
				if got := l.next(); !strings.Contains(got, "-32700") || strings.Contains(got, `"id"`) {
					t.Errorf("got %s", got)
				}
			}
			l.send(`{"jsonrpc":"2.0","id":4,"method":"echo","params":{"a":1,"a":2}}`)
			if got := l.next(); !strings.Contains(got, `"id":4`) {
				t.Errorf("duplicate members: %s", got)
			}
			l.send(`{"jsonrpc":"2.0","id":5,"method":"echo","params":{"s":"` + strings.Repeat("x", 900) + `"}}`)
			if got := l.next(); !strings.Contains(got, `"id":5`) || !strings.Contains(got, "300 bytes") {
				t.Errorf("oversized: %s", got)
			}
			l.send(`[{"jsonrpc":"2.0","id":6,"method":"echo"}]`)
			if got := l.next(); !strings.Contains(got, `"id":6`) || !strings.Contains(got, "-32600") {
				t.Errorf("forbidden batch: %s", got)
			}
			l.send(ping)
			want(t, "still works", l.next(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
		}
	})
}

func TestBatchOnAChannelIsOneArray_E17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20250326)
		l.send(`[{"jsonrpc":"2.0","id":1,"method":"hold"},{"jsonrpc":"2.0","id":2,"method":"hold"},{"jsonrpc":"2.0","id":3,"method":9}]`)
		one, two := <-b.held, <-b.held
		one.Send([]byte(note))
		want(t, "interim goes out meanwhile", l.next(), note)
		one.finish(`{}`)
		two.finish(`{}`)
		got := l.next()
		for _, id := range []string{`"id":1`, `"id":2`, `"id":3`} {
			if !strings.Contains(got, id) {
				t.Errorf("no %s in %s", id, got)
			}
		}
	})
}

func TestRequestsOnAChannelAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{MaxInFlight: 1}, b)
		l.initialize(mcp.V20251125)
		l.send(hold)
		k := <-b.held
		l.send(`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
		if got := l.next(); !strings.Contains(got, "-32603") {
			t.Errorf("got %s", got)
		}
		if k.Refuse(&downstream.Refusal{Status: 401}) {
			t.Error("a pipe has no status")
		}
		k.Abandon()
		k.Send([]byte(note)) // ignored
		l.send(`{"jsonrpc":"2.0","id":3,"method":"panic"}`)
		if got := l.next(); !strings.Contains(got, `"id":3`) || !strings.Contains(got, "-32603") {
			t.Errorf("got %s", got)
		}
	})
}

func TestHTTPSSEIsKeptAliveAndEndsWithItsConnection_E27(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{SSEMessages: "/messages"}, b)
		resp := p.get("")
		buf := make([]byte, 256)
		n, _ := resp.Body.Read(buf)
		if !strings.HasPrefix(string(buf[:n]), "event: endpoint\ndata: /messages?sessionId=") {
			t.Fatalf("got %q", buf[:n])
		}
		start := time.Now()
		n, _ = resp.Body.Read(buf)
		want(t, "comment", string(buf[:n]), ": keep-alive\n\n")
		if d := time.Since(start); d > 15*time.Second {
			t.Errorf("silent for %v", d)
		}
		want(t, "sessions", h.Sessions(), 1)
		_ = resp.Body.Close()
		synctest.Wait()
		want(t, "sessions", h.Sessions(), 0)
	})
}

func TestACancelledRequestThatGoesOnTakesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{MaxInFlight: 1}, b)
		l.initialize(mcp.V20251125)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
		k := <-b.held
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		if got := l.next(); !strings.Contains(got, "too many requests") {
			t.Errorf("got %s", got)
		}
		k.Abandon()
		l.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		want(t, "afterwards", l.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}
