package legacy

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
)

// socket opens a WebSocket, and a session on it, with these credentials.
func socket(t *testing.T, p *peer, auth string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{NetDialContext: p.client.Transport.(*http.Transport).DialContext}
	c, _, err := d.Dial("ws://localhost/mcp", http.Header{"Authorization": {auth}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	say(t, c, initialize(mcp.V20251125))
	frame(t, c)
	return c
}

func tokenUntil(end time.Time) string {
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":"i","sub":"s","exp":%d}`, end.Unix()))
	return "Bearer e30." + claims + ".sig"
}

func wantLapsed(t *testing.T, c *websocket.Conn) {
	t.Helper()
	if _, msg, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("got %s, %v", msg, err)
	}
}

func TestWebSocketEndsWithItsToken_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		start := time.Now()
		c := socket(t, p, tokenUntil(start.Add(5*time.Minute)))
		say(t, c, hold)
		k := <-b.held
		go func() {
			time.Sleep(time.Hour)
			k.finish(`{}`)
		}()
		want(t, "what began in time", frame(t, c), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		if d := time.Since(start); d < time.Hour {
			t.Errorf("it came after %v", d)
		}
		wantLapsed(t, c)
	})
}

func TestWebSocketOutlivesItsTokenWhileATaskRuns_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		start := time.Now()
		c := socket(t, p, tokenUntil(start.Add(5*time.Minute)))
		say(t, c, hold)
		k := <-b.held
		time.AfterFunc(time.Hour, k.Outlast())
		go k.finish(`{}`)
		_ = frame(t, c)
		wantLapsed(t, c)
		if d := time.Since(start); d < time.Hour {
			t.Errorf("it ended after %v", d)
		}
	})
}

func TestAWebSocketWhoseServerIsGoneLastsWhileATaskRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		c := socket(t, p, "")
		say(t, c, hold)
		k := <-b.held
		over := k.Outlast()
		go k.finish(`{}`)
		_ = frame(t, c)
		b.last().push.End(errors.New("the server is another one now"))
		synctest.Wait()
		say(t, c, ping)
		if got := frame(t, c); !strings.Contains(got, "the session has ended") {
			t.Error(got)
		}
		over()
		if _, msg, err := c.ReadMessage(); err == nil {
			t.Errorf("it goes on: %s", msg)
		}
	})
}

func TestWebSocketEndsWhenTheUpstreamRefusesItsCredentials_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := servePipe(t, Options{}, newFake())
		c := socket(t, p, "Bearer opaque")
		say(t, c, `{"jsonrpc":"2.0","id":1,"method":"refuse"}`)
		if got := frame(t, c); !strings.Contains(got, "authorization needed") {
			t.Errorf("the call got %s", got)
		}
		wantLapsed(t, c)
	})
}

func TestWebSocketStaysWhereNothingSaysThatItsCredentialsLapse_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, auth := range map[string]string{
			"none":                      "",
			"opaque":                    "Bearer opaque",
			"expired when it was taken": tokenUntil(time.Now().Add(-time.Hour)),
			"without an end":            "Bearer e30.e30.sig",
			"another scheme":            "Basic e30.e30.sig",
			"an end that is far off":    tokenUntil(time.Now().Add(24 * time.Hour)),
		} {
			_, p := servePipe(t, Options{}, newFake())
			c := socket(t, p, auth)
			if auth == "" {
				say(t, c, `{"jsonrpc":"2.0","id":2,"method":"refuse"}`)
				frame(t, c)
			}
			pinged := make(chan struct{})
			go func() {
				defer close(pinged)
				time.Sleep(10 * time.Minute)
				say(t, c, ping)
			}()
			want(t, name, frame(t, c), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
			<-pinged
		}
	})
}

// An HTTP+SSE stream takes no messages with another token: it ends with its own, so that its client opens another.
func TestHTTPSSEEndsWithItsToken_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHTTP(Options{}, newFake())
		mux := http.NewServeMux()
		mux.Handle("/sse", h.SSE("/messages"))
		mux.Handle("/messages", h.Messages())
		p := pipeTo(t, h, mux)
		start := time.Now()
		p.header.Set("Authorization", tokenUntil(start.Add(5*time.Minute)))
		resp, stream, post := p.openSSE()
		want(t, "initialize", post.post(initialize(mcp.V20241105)).StatusCode, 202)
		stream.next()
		_, _ = io.Copy(io.Discard, resp.Body) // it is cut off
		if d := time.Since(start); d < 5*time.Minute || d > 10*time.Minute {
			t.Errorf("it ended after %v", d)
		}
	})
}

// hearing is a client that reads all the time, and so answers pings.
type hearing struct {
	*websocket.Conn
	frames chan string
	end    error // of the connection, when frames is closed
}

// next is the next message, "" if none comes in an hour.
func (h *hearing) next() string {
	select {
	case text := <-h.frames:
		return text
	case <-time.After(time.Hour):
		return ""
	}
}

func hear(c *websocket.Conn) *hearing {
	h := &hearing{Conn: c, frames: make(chan string, 16)}
	go func() {
		defer close(h.frames)
		for {
			_, text, err := c.ReadMessage()
			if h.end = err; err != nil {
				return
			}
			h.frames <- string(text)
		}
	}()
	return h
}

// say sends a message, and returns the next one that comes.
func (h *hearing) say(t *testing.T, text string) string {
	t.Helper()
	say(t, h.Conn, text)
	return h.next()
}

func (h *hearing) wantLapsed(t *testing.T) {
	t.Helper()
	if text := h.next(); text != "" || !websocket.IsCloseError(h.end, websocket.ClosePolicyViolation) {
		t.Errorf("got %s, %v", text, h.end)
	}
}

// tooLate is when a token of five minutes has had its time, and no ping is just being written.
const tooLate = 7*time.Minute + 300*time.Millisecond

// lapsed is a WebSocket with one call under way, whose token has had its time.
func lapsed(t *testing.T, b *fakeBackend) (*hearing, *call) {
	_, p := servePipe(t, Options{}, b)
	c := hear(socket(t, p, tokenUntil(time.Now().Add(5*time.Minute))))
	say(t, c.Conn, hold)
	k := <-b.held
	time.Sleep(tooLate)
	return c, k
}

// refusedFor is the answer to a request of a connection whose credentials have had their time.
func refusedFor(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"` + channel.ErrLapsed.Error() + `","data":{"bridge":{}}}}`
}

func TestNothingBeginsOnAConnectionWhoseTokenHasExpired_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.connected = &fakeConv{backend: b, version: mcp.V20260728, stateless: true}
		c, k := lapsed(t, b)
		for method, params := range map[string]string{
			"tools/call": `{}`, "tools/list": `{}`, "ping": `{}`, "tasks/get": `{}`, "resources/subscribe": `{"uri":"a"}`,
			"initialize":      `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`,
			"server/discover": `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
		} {
			want(t, method, c.say(t, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":`+params+`}`), refusedFor("7"))
		}
		conv := b.last()
		say(t, c.Conn, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		say(t, c.Conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
		synctest.Wait()
		want(t, "notifications that had an effect", conv.notified, []string{})
		say(t, c.Conn, answerToLeg)
		synctest.Wait()
		want(t, "answers to what is under way", conv.answered, []string{`"leg"`})
		go k.finish(`{}`)
		want(t, "what is under way", c.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		c.wantLapsed(t)
	})
}

func TestACallIsCancelledOnAConnectionWhoseTokenHasExpired_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		c, k := lapsed(t, b)
		say(t, c.Conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		want(t, "cancelled", b.last().notified, []string{"notifications/cancelled"})
		go k.Abandon()
		c.wantLapsed(t)
	})
}

func TestNoMemberOfAnArrayBeginsWhenTheTokenHasExpired_E17_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		d := websocket.Dialer{NetDialContext: p.client.Transport.(*http.Transport).DialContext}
		conn, _, err := d.Dial("ws://localhost/mcp", http.Header{"Authorization": {tokenUntil(time.Now().Add(5 * time.Minute))}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		c := hear(conn)
		c.say(t, initialize(mcp.V20250326))
		say(t, c.Conn, hold)
		k := <-b.held
		time.Sleep(tooLate)
		want(t, "an array", c.say(t, `[{"jsonrpc":"2.0","id":7,"method":"tools/call"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`), "["+refusedFor("7")+","+refusedFor("8")+"]")
		want(t, "notifications", b.last().notified, []string{})
		k.Abandon()
	})
}

// A client that has a task goes on asking for it: there is no other way to its questions and its result.
func TestATaskIsAskedForThoughTheTokenHasExpired_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		c := hear(socket(t, p, tokenUntil(time.Now().Add(5*time.Minute))))
		say(t, c.Conn, hold)
		k := <-b.held
		over := k.Outlast()
		go k.finish(`{}`)
		<-c.frames
		time.Sleep(tooLate)
		want(t, "a task", c.say(t, `{"jsonrpc":"2.0","id":7,"method":"tasks/result"}`), `{"jsonrpc":"2.0","id":7,"result":{}}`)
		want(t, "a call", c.say(t, `{"jsonrpc":"2.0","id":8,"method":"tools/call"}`), refusedFor("8"))
		over()
		c.wantLapsed(t)
	})
}

// What only listens is no reason to keep a connection, nor is it heard any longer than its token is good.
func TestListensEndWithTheToken_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		modern := &untilOver{fakeConv: &fakeConv{backend: b, version: mcp.V20260728, stateless: true}}
		b.connected = modern
		_, p := servePipe(t, Options{}, b)
		start := time.Now()
		c := hear(socket(t, p, tokenUntil(start.Add(5*time.Minute))))
		say(t, c.Conn, hold)
		k := <-b.held
		want(t, "the listen", c.say(t, `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`), `{"jsonrpc":"2.0","id":5,"result":{"over":true}}`)
		if d := time.Since(start); d < 6*time.Minute || d > 7*time.Minute {
			t.Errorf("it ended after %v", d)
		}
		time.Sleep(time.Minute)
		conv := b.last()
		conv.mu.Lock()
		want(t, "its session listens", conv.deaf > 0, true)
		conv.mu.Unlock()
		go k.finish(`{}`)
		<-c.frames
		c.wantLapsed(t)
	})
}

// untilOver serves requests until their contexts end.
type untilOver struct{ *fakeConv }

func (l *untilOver) Serve(ctx context.Context, _ downstream.Caller, req downstream.Request, out downstream.Reply) {
	<-ctx.Done()
	out.Finish(downstream.Result(req.ID, []byte(`{"over":true}`)))
}

// A connection whose key the issuer has withdrawn went on making calls, and what only listens went on listening.
func TestNothingLastsLongerThanItsTokensKey_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const echo = `{"jsonrpc":"2.0","id":9,"method":"echo"}`
		b := newFake()
		var gone atomic.Bool
		_, p := servePipe(t, Options{
			Principal: func(*http.Request) string { return "alice" },
			Admit:     func(*http.Request) *downstream.Refusal { return nil }, // other tokens are good
			Withdrawn: func(auth string) func() bool {
				return func() bool { return gone.Load() && auth == "Bearer opaque" }
			},
		}, b)
		handed := make(chan error, 1)
		b.modern = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			handed <- context.Cause(r.Context())
		})
		c, other := hear(socket(t, p, "Bearer opaque")), hear(socket(t, p, "Bearer other"))
		say(t, c.Conn, hold)
		k := <-b.held
		p.asUser("Bearer opaque")
		p.initialize(mcp.V20250618)
		p.async(hold)
		held := <-b.held
		held.Send([]byte(note))
		ended := make(chan struct{})
		get := p.get("")
		go func() {
			_, _ = io.Copy(io.Discard, get.Body)
			close(ended)
		}()
		modern := *p
		modern.session = ""
		modern.async(`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want(t, "what has ended while the key was good", len(handed), 0)
		want(t, "a call", c.say(t, echo), `{"jsonrpc":"2.0","id":9,"result":{}}`)
		gone.Store(true)
		want(t, "a call at once", c.say(t, echo), refusedFor("9"))
		want(t, "somebody else's", other.say(t, echo), `{"jsonrpc":"2.0","id":9,"result":{}}`)
		<-ended
		want(t, "why what is handed on ends", <-handed, downstream.ErrLapsed)
		go k.finish(`{}`)
		want(t, "what is under way", c.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		c.wantLapsed(t)
		held.finish(`{}`)
	})
}

// A key that the issuer did not show for a while, and then again, left connections open and deaf: what a session hears without a request was
// ended for good meanwhile, and the connection no more. It ends, as all that its client was told says.
func TestAConnectionThatHasLapsedEndsThoughItsKeyComesBack_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, meanwhile := range map[string]func(t *testing.T, c *hearing){
			"nothing is asked": func(*testing.T, *hearing) { time.Sleep(time.Minute + 300*time.Millisecond) }, // no ping is just being written
			"a call is refused": func(t *testing.T, c *hearing) {
				want(t, "the call", c.say(t, `{"jsonrpc":"2.0","id":9,"method":"echo"}`), refusedFor("9"))
			},
		} {
			b := newFake()
			var gone atomic.Bool
			_, p := servePipe(t, Options{
				Principal: func(*http.Request) string { return "alice" },
				Admit:     func(*http.Request) *downstream.Refusal { return nil },
				Withdrawn: func(string) func() bool { return gone.Load },
			}, b)
			c := hear(socket(t, p, "Bearer opaque"))
			say(t, c.Conn, hold)
			k := <-b.held
			gone.Store(true)
			meanwhile(t, c)
			gone.Store(false) // the keys were read again
			want(t, name+": a call then", c.say(t, `{"jsonrpc":"2.0","id":8,"method":"echo"}`), refusedFor("8"))
			go k.finish(`{}`)
			want(t, name+": what was under way", c.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
			c.wantLapsed(t)
		}
	})
}

// Issuers write when a token ends in several ways.
func TestTheEndOfATokenIsReadHoweverItIsWritten_E34(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, written := range []string{"%d", `"%d"`, "%d.5", "%de0"} {
		auth := jwt(fmt.Sprintf(`{"iss":"i","sub":"s","exp":`+written+`}`, end.Unix()), "x")
		want(t, written, session.Expiry(auth), end.Add(time.Minute))
	}
}

// A message beside an HTTP+SSE stream has credentials of its own: where they are judged, newer ones are good.
func TestAMessageBesideAnHTTPSSEStreamIsTakenByItsOwnToken_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h := NewHTTP(Options{Principal: func(*http.Request) string { return "alice" }}, b)
		mux := http.NewServeMux()
		mux.Handle("/sse", h.SSE("/messages"))
		mux.Handle("/messages", h.Messages())
		p := pipeTo(t, h, mux)
		first := tokenUntil(time.Now().Add(5 * time.Minute))
		p.header.Set("Authorization", first)
		_, stream, post := p.openSSE()
		want(t, "initialize", post.post(initialize(mcp.V20241105)).StatusCode, 202)
		stream.next()
		said := make(chan string)
		go func() {
			for range 2 {
				said <- stream.next()
			}
		}()
		want(t, "a call", post.post(hold).StatusCode, 202)
		k := <-b.held
		time.Sleep(tooLate)
		want(t, "with the stream's", post.post(ping).StatusCode, 202)
		want(t, "on the stream", <-said, "|"+refusedFor("1"))
		post.header = http.Header{"Authorization": {tokenUntil(time.Now().Add(time.Hour))}}
		want(t, "with a newer one", post.post(`{"jsonrpc":"2.0","id":6,"method":"echo"}`).StatusCode, 202)
		want(t, "on the stream", <-said, `|{"jsonrpc":"2.0","id":6,"result":{}}`)
		k.Abandon()
	})
}

// Where tokens end at the bridge nobody else ends what only listens: a session's GET, and what is handed on.
func TestWhatOnlyListensEndsWithItsToken_E24(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, judged := range []bool{true, false} {
			opt, b := Options{Principal: func(*http.Request) string { return "alice" }}, newFake()
			if judged {
				opt.Admit = func(*http.Request) *downstream.Refusal { return nil }
			}
			handed := make(chan time.Duration, 1)
			start := time.Now()
			b.modern = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-r.Context().Done():
					want(t, "why it ends", context.Cause(r.Context()), downstream.ErrLapsed)
				case <-time.After(time.Hour):
				}
				handed <- time.Since(start)
			})
			_, p := servePipe(t, opt, b)
			p.asUser(tokenUntil(start.Add(5 * time.Minute)))
			p.initialize(mcp.V20250618)
			p.async(hold)
			k := <-b.held
			k.Send([]byte(note))
			ended := make(chan time.Duration, 1)
			get := p.get("")
			go func() {
				_, _ = io.Copy(io.Discard, get.Body)
				ended <- time.Since(start)
			}()
			modern := *p
			modern.session = ""
			modern.async(`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
			time.Sleep(6*time.Minute + 30*time.Second)
			synctest.Wait()
			want(t, fmt.Sprintf("judged %v: the GET has ended", judged), len(ended) == 1, judged)
			want(t, fmt.Sprintf("judged %v: what is handed on has", judged), len(handed) == 1, judged)
			k.finish(`{}`)
			time.Sleep(time.Hour)
		}
	})
}
