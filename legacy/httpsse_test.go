package legacy

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// serveAll mounts every transport and returns a client for the server's root.
func serveAll(t *testing.T, opt Options, b downstream.Backend) (*HTTP, *peer) {
	t.Helper()
	h := NewHTTP(opt, b)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.Handle("/sse", h.SSE("/messages"))
	mux.Handle("/messages", h.Messages())
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		h.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return h, &peer{t: t, client: s.Client(), url: s.URL, header: http.Header{}}
}

// openSSE opens an HTTP+SSE connection and returns its stream and its endpoint.
func (p *peer) openSSE() (*http.Response, *events, *peer) {
	p.t.Helper()
	at := *p
	at.url += "/sse"
	resp := at.get("")
	d := readEvents(p.t, resp)
	ev, err := d.d.Next()
	if err != nil || ev.Type != "endpoint" {
		p.t.Fatalf("first event %+v, %v", ev, err)
	}
	post := *p
	post.url += string(ev.Data)
	return resp, d, &post
}

func TestHTTPSSE_E25_E26_E27(t *testing.T) {
	b := newFake()
	_, p := serveAll(t, Options{}, b)
	_, stream, post := p.openSSE()
	status, body := post.call(initialize(mcp.V20241105))
	want(t, "status", status, 202)
	want(t, "body", body, "")
	want(t, "answer", stream.next(), `|{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}`)
	post.call(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)
	want(t, "interim", stream.next(), "|"+note)
	want(t, "result", stream.next(), `|{"jsonrpc":"2.0","id":1,"result":{}}`)
	b.last().push.Push("k", []byte(`{"pushed":1}`))
	want(t, "push", stream.next(), `|{"pushed":1}`)
}

func TestHTTPSSENegotiatesAnyVersion_E29(t *testing.T) {
	_, p := serveAll(t, Options{}, newFake())
	_, stream, post := p.openSSE()
	post.call(initialize(mcp.V20251125))
	want(t, "no id, no priming", stream.next(), `|{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
}

func TestHTTPSSECloseEndsEveryFlow_DT19(t *testing.T) {
	b := newFake()
	h, p := serveAll(t, Options{}, b)
	resp, stream, post := p.openSSE()
	post.call(initialize(mcp.V20241105))
	stream.next()
	post.call(hold)
	<-b.held
	_ = resp.Body.Close()
	eventually(t, "the server has noticed", func() bool { return h.Sessions() == 0 && b.last().cause() != nil })
	want(t, "cause", b.last().cause(), channel.ErrDisconnected)
	status, _ := post.call(ping)
	want(t, "POST to a dead session", status, 404)
}

func TestHTTPSSEPrincipalMustMatch_E30(t *testing.T) {
	_, p := serveAll(t, Options{}, newFake())
	p.header.Set("Authorization", "Bearer alice")
	_, _, post := p.openSSE()
	want(t, "alice", post.post(initialize(mcp.V20241105)).StatusCode, 202)
	post.header = http.Header{"Authorization": {"Bearer mallory"}}
	want(t, "mallory", post.post(ping).StatusCode, 404)
	post.header = http.Header{"Authorization": {"Bearer alice"}, "Origin": {"https://evil.example"}}
	want(t, "foreign origin", post.post(ping).StatusCode, 403)
}

func TestHTTPSSEBadInput(t *testing.T) {
	_, p := serveAll(t, Options{MaxBody: 1000}, newFake())
	_, stream, post := p.openSSE()
	for body, status := range map[string]int{
		`{"jsonrpc":`: 400, `{"jsonrpc":"2.0","id":7,"method":3}`: 400, strings.Repeat(" ", 2000): 413,
	} {
		want(t, body[:10], post.post(body).StatusCode, status)
	}
	at := *p
	at.url += "/messages"
	want(t, "no session", at.post(ping).StatusCode, 404)
	resp := at.get("")
	want(t, "GET", resp.StatusCode, 405)
	if why := text(t, resp); !strings.Contains(why, "use POST, OPTIONS") {
		t.Errorf("405 says %s", why)
	}
	post.header = http.Header{"Content-Type": {"text/plain"}}
	resp = post.post(ping)
	want(t, "type", resp.StatusCode, 415)
	if why := text(t, resp); !strings.Contains(why, "application/json") {
		t.Errorf("415 says %s", why)
	}
	post.header = http.Header{}
	at.url = p.url + "/sse"
	want(t, "POST to the stream", at.post(ping).StatusCode, 405)
	post.call(initialize(mcp.V20241105))
	stream.next()
}

// What names no id has no place on the stream of older versions (E-32), so the POST
// itself says what was wrong.
func TestHTTPSSEAnswersThePOSTOfABatchThatNoIDCanRefuse_E14(t *testing.T) {
	_, p := serveAll(t, Options{MaxBatch: 1}, newFake())
	for _, version := range []mcp.Version{mcp.V20250326, mcp.V20250618, mcp.V20251125} {
		_, stream, post := p.openSSE()
		post.call(initialize(version))
		stream.next()
		bad := []string{`[]`, `[` + note + `,` + note + `]`, `[7]`, `[{"jsonrpc":`}
		if version != mcp.V20250326 {
			bad = append(bad, `[`+note+`]`)
		}
		for _, body := range bad {
			status, answer := post.call(body)
			want(t, "status of "+body, status, 400)
			if !strings.HasPrefix(answer, `{"jsonrpc":"2.0","error":{"code":-32`) {
				t.Errorf("%s: %s gets %s", version, body, answer)
			}
		}
		post.call(ping)
		want(t, "nothing of it on the stream", stream.next(), `|{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	}
}

func TestHTTPSSEOnTheEndpointOnlyWhenAsked_E28(t *testing.T) {
	_, p := serveAll(t, Options{SSEMessages: "/messages"}, newFake())
	p.url += "/mcp"
	ev, err := readEvents(t, p.get("")).d.Next()
	if err != nil || ev.Type != "endpoint" {
		t.Errorf("event %+v, %v", ev, err)
	}
	p.initialize(mcp.V20251125)
	want(t, "with a session it is the standalone stream", readEvents(t, p.get("")).next(), "0-1|")
}

func TestConnectionsAreBounded(t *testing.T) {
	_, p := serveAll(t, Options{MaxSessions: 1}, newFake())
	p.openSSE()
	at := *p
	at.url += "/sse"
	want(t, "second", at.get("").StatusCode, 503)
}

func dial(t *testing.T, p *peer, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"mcp"}}
	c, resp, err := d.Dial("ws"+strings.TrimPrefix(p.url, "http")+"/mcp", header)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, resp, err
}

func frame(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	kind, msg, err := c.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		t.Fatalf("frame of kind %d, %v", kind, err)
	}
	return string(msg)
}

func say(t *testing.T, c *websocket.Conn, msg string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(msg)); err != nil {
		t.Fatal(err)
	}
}

func TestWebSocketCarriesOneMessagePerTextFrame_E33(t *testing.T) {
	b := newFake()
	_, p := serveAll(t, Options{}, b)
	c, resp, err := dial(t, p, http.Header{"Authorization": {"Bearer alice"}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "subprotocol", resp.Header.Get("Sec-WebSocket-Protocol"), "mcp")
	say(t, c, initialize(mcp.V20250618))
	want(t, "initialize", frame(t, c), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}`)
	say(t, c, `{"jsonrpc":"2.0","id":1,"method":"chatty"}`)
	want(t, "interim", frame(t, c), note)
	want(t, "result", frame(t, c), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	say(t, c, hold)
	k := <-b.held
	want(t, "principal of the upgrade (E-34)", k.caller.Authorization, "Bearer alice")
	say(t, c, `{"jsonrpc":"2.0","id":1,"method":"echo"}`)
	if got := frame(t, c); !strings.Contains(got, "-32600") {
		t.Errorf("duplicate id: %s (B-1)", got)
	}
	k.finish(`{}`)
	want(t, "held", frame(t, c), `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

func TestWebSocketChecksTheOrigin_E34(t *testing.T) {
	_, p := serveAll(t, Options{}, newFake())
	_, resp, err := dial(t, p, http.Header{"Origin": {"https://evil.example"}})
	if err == nil {
		t.Fatal("a foreign page got in")
	}
	want(t, "status", resp.StatusCode, 403)
}

func TestWebSocketRefusesBinaryAndOversizedFrames_E33(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, code int
		msg        string
	}{
		"binary":    {websocket.BinaryMessage, websocket.CloseUnsupportedData, "{}"},
		"oversized": {websocket.TextMessage, websocket.CloseMessageTooBig, strings.Repeat(" ", 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			_, p := serveAll(t, Options{MaxBody: 1000}, b)
			c, _, err := dial(t, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			say(t, c, initialize(mcp.V20251125))
			frame(t, c)
			if err := c.WriteMessage(tc.kind, []byte(tc.msg)); err != nil {
				t.Fatal(err)
			}
			_, _, err = c.ReadMessage()
			if !websocket.IsCloseError(err, tc.code) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestWebSocketSurvivesAMalformedFrame_E32(t *testing.T) {
	_, p := serveAll(t, Options{}, newFake())
	c, _, err := dial(t, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, initialize(mcp.V20251125))
	frame(t, c)
	say(t, c, "garbage")
	if got := frame(t, c); !strings.Contains(got, "-32700") {
		t.Errorf("got %s", got)
	}
	say(t, c, ping)
	want(t, "still works", frame(t, c), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
}

func TestShutdownEndsConnections(t *testing.T) {
	b := newFake()
	h, p := serveAll(t, Options{}, b)
	c, _, err := dial(t, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, initialize(mcp.V20251125))
	frame(t, c)
	_, stream, _ := p.openSSE()
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("err = %v", err)
	}
	if _, err := stream.d.Next(); err == nil {
		t.Error("the HTTP+SSE stream goes on")
	}
	want(t, "cause", b.last().cause(), error(sessions.Closed))
}

// Who runs the bridge ends a session: its calls are answered, be it a connection or not, before the
// connection ends.
func TestCallsOfASessionThatAnOperatorEndsAreAnswered_DT19(t *testing.T) {
	id := func(h *HTTP) string { return h.Look()[0].ID }
	for name, begin := range map[string]func(*peer) func() string{
		"Streamable HTTP": func(p *peer) func() string {
			at := *p
			at.url += "/mcp"
			at.initialize(mcp.V20251125)
			stream := readEvents(p.t, at.post(hold))
			stream.next() // that the client may come back
			return func() string { return stream.next() }
		},
		"HTTP+SSE": func(p *peer) func() string {
			_, stream, post := p.openSSE()
			post.call(initialize(mcp.V20241105))
			stream.next()
			post.call(hold)
			return func() string { return stream.next() }
		},
		"WebSocket": func(p *peer) func() string {
			conn, _, err := dial(p.t, p, nil)
			if err != nil {
				p.t.Fatal(err)
			}
			p.t.Cleanup(func() { _ = conn.Close() })
			for _, text := range []string{initialize(mcp.V20251125), hold} {
				if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
					p.t.Fatal(err)
				}
			}
			_, _, _ = conn.ReadMessage()
			return func() string {
				_, text, err := conn.ReadMessage()
				want(p.t, "read", err, error(nil))
				return string(text)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			b.ends = func(k *call) {
				cause := b.last().cause()
				if downstream.Audible(cause) {
					k.Finish([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"` + cause.Error() + `"}}`))
					return
				}
				k.Abandon()
			}
			h, p := serveAll(t, Options{}, b)
			answer := begin(p)
			<-b.held
			want(t, "there was one", h.EndSession(id(h)), true)
			if got := answer(); !strings.Contains(got, "ended by who runs the bridge") {
				t.Errorf("the call ends with %q", got)
			}
			want(t, "cause", errors.Is(b.last().cause(), downstream.ErrOperator), true)
		})
	}
}
