package streamable

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// outcome is one way in which a server can answer, and what must come of it.
type outcome struct {
	name    string
	respond func(w http.ResponseWriter, id jsonrpc.ID)
	cause   upstream.Cause // 0: an answer
	code    int            // of the answer's error, 0: a result
	text    string
}

func raw(status int, media, body string) func(http.ResponseWriter, jsonrpc.ID) {
	return func(w http.ResponseWriter, id jsonrpc.ID) {
		if media != "" {
			w.Header()["Content-Type"] = []string{media}
		} else {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(strings.ReplaceAll(body, "ID", string(id))))
	}
}

func rpcError(status, code int) func(http.ResponseWriter, jsonrpc.ID) {
	return raw(status, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":ID,"error":{"code":%d,"message":"m"}}`, code))
}

const (
	okBody   = `{"jsonrpc":"2.0","id":ID,"result":{}}`
	progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`
)

var outcomes = []outcome{
	{"JSON", raw(200, "application/json", okBody), 0, 0, ""},
	{"JSON with parameters", raw(200, "Application/JSON; charset=utf-8", okBody), 0, 0, ""},
	{"chunked JSON", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("Content-Type", "application/json")
		for _, part := range []string{`{"jsonrpc":"2.0",`, `"id":`, string(id), `,"result":{}}`} {
			_, _ = w.Write([]byte(part))
			_ = http.NewResponseController(w).Flush()
		}
	}, 0, 0, ""},
	{"stream", raw(200, "text/event-stream", "data: "+okBody+"\n\n"), 0, 0, ""},
	{"E-36 stream with everything a stream may have", raw(200, "text/event-stream; charset=utf-8",
		"\ufeff: hi\r\nretry: 5\r\nid: 1\r\ndata:\r\n\r\nevent: odd\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\r\ndata: \"result\":{}}\r\n\r\n"), 0, 0, ""},
	{"E-36 events of other types that are no messages", raw(200, "text/event-stream", "event: ping\ndata: 2026-11-29 10:00:00\n\nevent: status\ndata: {\"busy\":true}\n\ndata: "+okBody+"\n\n"), 0, 0, ""},
	{"E-38 another id on a stream is ignored", raw(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":\"ID\",\"result\":{\"x\":1}}\n\ndata: "+okBody+"\n\n"), 0, 0, ""},
	{"requests on a stream are ignored", raw(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"ping\"}\n\ndata: "+okBody+"\n\n"), 0, 0, ""},
	{"late events are dropped", raw(200, "text/event-stream", "data: "+okBody+"\n\ndata: "+progress+"\n\ndata: broken\n\n"), 0, 0, ""},
	{"E-39 error with 400", rpcError(400, -32602), 0, -32602, ""},
	{"E-39 error with 404", rpcError(404, -32601), 0, -32601, ""},
	{"E-39 missing capability", rpcError(400, -32021), 0, -32021, ""},
	{"error with 200", rpcError(200, -32000), 0, -32000, ""},
	{"error with 500", rpcError(500, -32603), 0, -32603, ""},
	{"a long error with 400", longError(400, 50<<10), 0, -32000, ""},
	{"an error with 400 that is too large", longError(400, 300<<10), upstream.TooLarge, 0, "exceeds"},
	{"much with 401", longError(401, 300<<10), upstream.Unauthorized, 0, "401"},
	{"much that is no JSON with 404", raw(404, "text/html", strings.Repeat("x", 300<<10)), upstream.NotModern, 0, "404"},
	{"error without an id", raw(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}`), 0, -32600, ""},
	{"error with a null id", raw(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`), 0, -32600, ""},

	{"E-40 empty 400", raw(400, "", ""), upstream.NotModern, 0, "2026-07-28"},
	{"E-40 text 404", raw(404, "text/plain", "not found"), upstream.NotModern, 0, "URL"},
	{"E-40 405", raw(405, "", ""), upstream.NotModern, 0, "405"},
	{"error of another id with 404", rpcErrorOther(404), upstream.NotModern, 0, "404"},
	{"A-23 401", raw(401, "", ""), upstream.Unauthorized, 0, "401"},
	{"A-23 403 with an error", rpcError(403, -32000), upstream.Unauthorized, 0, "403"},
	{"E-41 202", raw(202, "", ""), upstream.BadResponse, 0, "202"},
	{"E-41 204", raw(204, "", ""), upstream.BadResponse, 0, "204"},
	{"E-41 HTML", raw(200, "text/html", "<html>"), upstream.BadResponse, 0, "text/html"},
	{"E-41 no content type", raw(200, "", okBody), upstream.BadResponse, 0, "content type"},
	{"418", raw(418, "", ""), upstream.BadResponse, 0, "418"},
	{"413", raw(413, "", ""), upstream.BadResponse, 0, "413"},
	{"429", raw(429, "", ""), upstream.Busy, 0, "429"},
	{"503", raw(503, "text/plain", "later"), upstream.Busy, 0, "503"},
	{"500", raw(500, "text/plain", "oops"), upstream.ServerError, 0, "500"},
	{"502", raw(502, "text/html", "<html>"), upstream.ServerError, 0, "502"},
	{"plain http to a TLS port", raw(400, "", "Client sent an HTTP request to an HTTPS server.\n"), upstream.TLS, 0, "https"},
	{"empty body", raw(200, "application/json", ""), upstream.BadResponse, 0, "malformed"},
	{"no JSON", raw(200, "application/json", "oops"), upstream.BadResponse, 0, "malformed"},
	{"truncated JSON", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{`), upstream.BadResponse, 0, "malformed"},
	{"duplicate members", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"a":1,"a":2}}`), upstream.BadResponse, 0, "malformed"},
	{"invalid UTF-8", raw(200, "application/json", "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":\"\xff\"}}"), upstream.BadResponse, 0, "malformed"},
	{"batch", raw(200, "application/json", "["+okBody+"]"), upstream.BadResponse, 0, "malformed"},
	{"both result and error", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}`), upstream.BadResponse, 0, "malformed"},
	{"a notification", raw(200, "application/json", progress), upstream.BadResponse, 0, "different"},
	{"E-38 id of another type", raw(200, "application/json", `{"jsonrpc":"2.0","id":"ID","result":{}}`), upstream.BadResponse, 0, "different"},
	{"broken event", raw(200, "text/event-stream", "data: {\n\n"), upstream.BadResponse, 0, "malformed"},
	{"too large", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"x":"`+strings.Repeat("x", 70<<10)+`"}}`), upstream.TooLarge, 0, "exceeds"},
	{"too large without a length", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(make([]byte, 70<<10))
	}, upstream.TooLarge, 0, "exceeds"},
	{"event too large", raw(200, "text/event-stream", "data: "+strings.Repeat("x", 70<<10)+"\n\n"), upstream.TooLarge, 0, "exceeds"},
	{"stream ends early", raw(200, "text/event-stream", "data: "+progress+"\n\n"), upstream.Lost, 0, "before it was complete"},
	{"stream ends at once", raw(200, "text/event-stream", ""), upstream.Lost, 0, "before it was complete"},
	{"stream ends inside the answer", raw(200, "text/event-stream", "data: "+okBody+"\n"), upstream.Lost, 0, "before it was complete"},
	{"body shorter than announced", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}, upstream.Lost, 0, "before it was complete"},
	{"connection dropped", func(http.ResponseWriter, jsonrpc.ID) { panic(http.ErrAbortHandler) }, upstream.Lost, 0, "lost"},
	{"more interim responses than fit into a packet", func(w http.ResponseWriter, id jsonrpc.ID) {
		for range 200 {
			w.WriteHeader(http.StatusProcessing)
		}
		answer(w, id, `{}`)
	}, 0, 0, ""},
	{"head too large", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("X", strings.Repeat("x", 70<<10))
		answer(w, id, `{}`)
	}, upstream.BadResponse, 0, "head too large"},
	{"interim responses too large", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("X", strings.Repeat("x", 700))
		for range 100 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		answer(w, id, `{}`)
	}, upstream.BadResponse, 0, "head too large"},
	{"no HTTP", spoken("SSH-2.0-secret\r\n\r\n"), upstream.BadResponse, 0, "does not answer in HTTP/1.1"},
	{"bad field", spoken("HTTP/1.1 200 OK\r\nsecret\r\n\r\n"), upstream.BadResponse, 0, "does not answer in HTTP/1.1"},
	{"bad length", spoken("HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n"), upstream.BadResponse, 0, "does not answer in HTTP/1.1"},
	{"bad chunk", spoken("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n"),
		upstream.BadResponse, 0, "does not answer in HTTP/1.1"},
	{"a frame of HTTP/2", spoken("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"), upstream.BadResponse, 0, "speaks only HTTP/2"},
	{"head broken off", spoken("HTTP/1.1 200 OK\r\nContent-"), upstream.Lost, 0, "lost"},
	{"chunk broken off", spoken("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"), upstream.Lost, 0, "before it was complete"},
	{"E-42 redirect elsewhere", func(w http.ResponseWriter, _ jsonrpc.ID) {
		w.Header().Set("Location", "http://elsewhere.example/mcp?secret=1")
		w.WriteHeader(307)
	}, upstream.BadResponse, 0, "elsewhere.example/mcp;"},
	{"E-42 redirect that changes the method", func(w http.ResponseWriter, _ jsonrpc.ID) {
		w.Header().Set("Location", "/other")
		w.WriteHeader(302)
	}, upstream.BadResponse, 0, "302"},
	{"redirect to nowhere", raw(308, "", ""), upstream.BadResponse, 0, "nowhere"},
	{"redirect loop", func(w http.ResponseWriter, _ jsonrpc.ID) {
		w.Header().Set("Location", "/")
		w.WriteHeader(307)
	}, upstream.BadResponse, 0, "more than"},
}

func longError(status, size int) func(http.ResponseWriter, jsonrpc.ID) {
	return raw(status, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"m","data":"`+strings.Repeat("x", size)+`"}}`)
}

// E-39: an error is as long as any response may be, whatever its status.
func TestLongErrorsAreTheServers_E39(t *testing.T) {
	for _, status := range []int{200, 400, 404, 500} {
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { longError(status, 300<<10)(w, g.msg.ID) })
			c := newClient(t, p.URL, opt)
			for range 2 {
				ans, err := c.Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
				if err != nil || ans.Error == nil || len(ans.Error.Data) < 300<<10 {
					t.Fatalf("HTTP %d: %v", status, err)
				}
			}
		})
	}
}

// spoken sends text as it is, and ends the connection.
func spoken(text string) func(http.ResponseWriter, jsonrpc.ID) {
	return func(w http.ResponseWriter, _ jsonrpc.ID) {
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer nc.Close()
		_, _ = io.WriteString(nc, text)
	}
}

func rpcErrorOther(status int) func(http.ResponseWriter, jsonrpc.ID) {
	return raw(status, "application/json", `{"jsonrpc":"2.0","id":"other","error":{"code":-32601,"message":"m"}}`)
}

func TestE36ToE42EveryResponseHasItsOutcome(t *testing.T) {
	for _, tc := range outcomes {
		t.Run(tc.name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, opt Options) {
				opt.MaxResponse = 64 << 10
				p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { tc.respond(w, g.msg.ID) })
				c := newClient(t, p.URL, opt)
				ans, err := c.Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
				if tc.cause == 0 {
					checkAnswer(t, tc, ans, err)
					return
				}
				f, ok := err.(*upstream.Failure)
				if !ok || ans != nil || f.Cause != tc.cause || !strings.Contains(f.Error(), tc.text) || !f.Sent {
					t.Fatalf("answer %+v, error %v (%+v)", ans, err, f)
				}
				if strings.Contains(f.Error(), "secret") || len(f.Error()) > 500 {
					t.Fatalf("text %q", f.Error())
				}
			})
		})
	}
}

func checkAnswer(t *testing.T, tc outcome, ans *upstream.Answer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if tc.code == 0 && (ans.Error != nil || string(ans.Result) != "{}") {
		t.Fatalf("result %s, error %v", ans.Result, ans.Error)
	}
	if tc.code != 0 && (ans.Error == nil || ans.Error.Code != tc.code || ans.Result != nil) {
		t.Fatalf("result %s, error %v", ans.Result, ans.Error)
	}
}
