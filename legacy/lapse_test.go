package legacy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
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
