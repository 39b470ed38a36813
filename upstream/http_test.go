package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestB2EveryRequestCarriesTheHeadersOfItsBody(t *testing.T) {
	for _, tc := range []struct{ method, params, name string }{
		{mcp.MethodToolsCall, `"name":"t x"`, "t x"},
		{mcp.MethodPromptsGet, `"name":"é"`, "=?base64?w6k=?="},
		{mcp.MethodResourcesRead, `"uri":"file:///a b"`, "file:///a b"},
		{mcp.MethodTasksGet, `"taskId":"1"`, "1"},
		{mcp.MethodTasksUpdate, `"taskId":"1"`, "1"},
		{mcp.MethodTasksCancel, `"taskId":"1"`, "1"},
		{mcp.MethodToolsList, `"name":"not this one"`, ""},
		{"vendor/thing", ``, ""},
	} {
		eachTransport(t, func(t *testing.T, opt HTTPOptions) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { answer(w, g.msg.ID, `{}`) })
			opt.Header = http.Header{"X-Static": {"s"}, "Authorization": {"Bearer static"}, "Mcp-Name": {"spoofed"}}
			c := newClient(t, p.URL+"/mcp?tenant=1", opt)
			cl := call(tc.method, tc.params)
			cl.Header = http.Header{"Traceparent": {"tp"}, "Cookie": {"c"}, "Mcp-Method": {"spoofed"}}
			mustDo(t, c, cl)
			cl.Authorization = "Bearer own"
			mustDo(t, c, cl)
			first, second := p.next(t), p.next(t)
			for name, want := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": tc.method, "Mcp-Name": tc.name, "Authorization": "Bearer static",
				"X-Static": "s", "Traceparent": "tp", "Cookie": "", "Mcp-Session-Id": "", "Accept-Encoding": "",
			} {
				if got := strings.Join(first.header.Values(name), "|"); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if second.header.Get("Authorization") != "Bearer own" || first.method != "POST" || first.path != "/mcp?tenant=1" {
				t.Errorf("%s %s %v", first.method, first.path, second.header)
			}
			if first.msg.ID == second.msg.ID || first.msg.ID == "" || string(first.msg.Params) != string(cl.Params) {
				t.Errorf("ids %s and %s, params %s", first.msg.ID, second.msg.ID, first.msg.Params)
			}
		})
	}
}

func TestA21TheVersionHeaderRepeatsMeta(t *testing.T) {
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { answer(w, g.msg.ID, `{}`) })
	c := newClient(t, p.URL, HTTPOptions{})
	cl := call(mcp.MethodPing, "")
	cl.Params = []byte(strings.Replace(string(cl.Params), "2026-07-28", "DRAFT-2026-v1", 1))
	mustDo(t, c, cl)
	if v := p.next(t).header.Get("Mcp-Protocol-Version"); v != "DRAFT-2026-v1" {
		t.Fatalf("version header %q", v)
	}
}

// outcome is one way in which a server can answer, and what must come of it.
type outcome struct {
	name    string
	respond func(w http.ResponseWriter, id jsonrpc.ID)
	cause   Cause // 0: an answer
	code    int   // of the answer's error, 0: a result
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
	{"E-38 another id on a stream is ignored", raw(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":\"ID\",\"result\":{\"x\":1}}\n\ndata: "+okBody+"\n\n"), 0, 0, ""},
	{"requests on a stream are ignored", raw(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"ping\"}\n\ndata: "+okBody+"\n\n"), 0, 0, ""},
	{"late events are dropped", raw(200, "text/event-stream", "data: "+okBody+"\n\ndata: "+progress+"\n\ndata: broken\n\n"), 0, 0, ""},
	{"E-39 error with 400", rpcError(400, -32602), 0, -32602, ""},
	{"E-39 error with 404", rpcError(404, -32601), 0, -32601, ""},
	{"E-39 missing capability", rpcError(400, -32021), 0, -32021, ""},
	{"error with 200", rpcError(200, -32000), 0, -32000, ""},
	{"error with 500", rpcError(500, -32603), 0, -32603, ""},
	{"error without an id", raw(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}`), 0, -32600, ""},
	{"error with a null id", raw(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`), 0, -32600, ""},

	{"E-40 empty 400", raw(400, "", ""), NotModern, 0, "2026-07-28"},
	{"E-40 text 404", raw(404, "text/plain", "not found"), NotModern, 0, "URL"},
	{"E-40 405", raw(405, "", ""), NotModern, 0, "405"},
	{"error of another id with 404", rpcErrorOther(404), NotModern, 0, "404"},
	{"A-23 401", raw(401, "", ""), Unauthorized, 0, "401"},
	{"A-23 403 with an error", rpcError(403, -32000), Unauthorized, 0, "403"},
	{"E-41 202", raw(202, "", ""), BadResponse, 0, "202"},
	{"E-41 204", raw(204, "", ""), BadResponse, 0, "204"},
	{"E-41 HTML", raw(200, "text/html", "<html>"), BadResponse, 0, "text/html"},
	{"E-41 no content type", raw(200, "", okBody), BadResponse, 0, "content type"},
	{"418", raw(418, "", ""), BadResponse, 0, "418"},
	{"429", raw(429, "", ""), Busy, 0, "429"},
	{"503", raw(503, "text/plain", "later"), Busy, 0, "503"},
	{"500", raw(500, "text/plain", "oops"), ServerError, 0, "500"},
	{"502", raw(502, "text/html", "<html>"), ServerError, 0, "502"},
	{"plain http to a TLS port", raw(400, "", "Client sent an HTTP request to an HTTPS server.\n"), TLS, 0, "https"},
	{"empty body", raw(200, "application/json", ""), BadResponse, 0, "malformed"},
	{"no JSON", raw(200, "application/json", "oops"), BadResponse, 0, "malformed"},
	{"truncated JSON", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{`), BadResponse, 0, "malformed"},
	{"duplicate members", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"a":1,"a":2}}`), BadResponse, 0, "malformed"},
	{"invalid UTF-8", raw(200, "application/json", "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":\"\xff\"}}"), BadResponse, 0, "malformed"},
	{"batch", raw(200, "application/json", "["+okBody+"]"), BadResponse, 0, "malformed"},
	{"both result and error", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}`), BadResponse, 0, "malformed"},
	{"a notification", raw(200, "application/json", progress), BadResponse, 0, "different"},
	{"E-38 id of another type", raw(200, "application/json", `{"jsonrpc":"2.0","id":"ID","result":{}}`), BadResponse, 0, "different"},
	{"broken event", raw(200, "text/event-stream", "data: {\n\n"), BadResponse, 0, "malformed"},
	{"too large", raw(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"x":"`+strings.Repeat("x", 70<<10)+`"}}`), TooLarge, 0, "exceeds"},
	{"too large without a length", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(make([]byte, 70<<10))
	}, TooLarge, 0, "exceeds"},
	{"event too large", raw(200, "text/event-stream", "data: "+strings.Repeat("x", 70<<10)+"\n\n"), TooLarge, 0, "exceeds"},
	{"stream ends early", raw(200, "text/event-stream", "data: "+progress+"\n\n"), Lost, 0, "before it was complete"},
	{"stream ends at once", raw(200, "text/event-stream", ""), Lost, 0, "before it was complete"},
	{"stream ends inside the answer", raw(200, "text/event-stream", "data: "+okBody+"\n"), Lost, 0, "before it was complete"},
	{"body shorter than announced", func(w http.ResponseWriter, id jsonrpc.ID) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}, Lost, 0, "before it was complete"},
	{"connection dropped", func(http.ResponseWriter, jsonrpc.ID) { panic(http.ErrAbortHandler) }, Lost, 0, "lost"},
	{"E-42 redirect elsewhere", func(w http.ResponseWriter, _ jsonrpc.ID) {
		w.Header().Set("Location", "http://elsewhere.example/mcp?secret=1")
		w.WriteHeader(307)
	}, BadResponse, 0, "elsewhere.example/mcp;"},
	{"E-42 redirect that changes the method", func(w http.ResponseWriter, _ jsonrpc.ID) {
		w.Header().Set("Location", "/other")
		w.WriteHeader(302)
	}, BadResponse, 0, "302"},
	{"redirect to nowhere", raw(308, "", ""), BadResponse, 0, "nowhere"},
	{"redirect loop", func(w http.ResponseWriter, _ jsonrpc.ID) {
		w.Header().Set("Location", "/")
		w.WriteHeader(307)
	}, BadResponse, 0, "more than"},
}

func rpcErrorOther(status int) func(http.ResponseWriter, jsonrpc.ID) {
	return raw(status, "application/json", `{"jsonrpc":"2.0","id":"other","error":{"code":-32601,"message":"m"}}`)
}

func TestE36ToE42EveryResponseHasItsOutcome(t *testing.T) {
	for _, tc := range outcomes {
		t.Run(tc.name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, opt HTTPOptions) {
				opt.MaxResponse = 64 << 10
				p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { tc.respond(w, g.msg.ID) })
				c := newClient(t, p.URL, opt)
				ans, err := c.Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
				if tc.cause == 0 {
					checkAnswer(t, tc, ans, err)
					return
				}
				f, ok := err.(*Failure)
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

func checkAnswer(t *testing.T, tc outcome, ans *Answer, err error) {
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

func TestH3ChallengesSurvive(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) {
			w.Header().Add("WWW-Authenticate", `Bearer error="insufficient_scope", scope="a b"`)
			w.Header().Add("WWW-Authenticate", `Basic`)
			http.Error(w, "no", 403)
		})
		_, err := newClient(t, p.URL, opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		f := err.(*Failure)
		if f.Status != 403 || len(f.Challenge) != 2 || f.Challenge[0] != `Bearer error="insufficient_scope", scope="a b"` || string(f.Body) != "no\n" {
			t.Fatalf("%+v", f)
		}
	})
}

func TestE42SameOriginRedirectsKeepTheRequest(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
			if n == 0 {
				w.Header().Set("Location", "/moved?x=1")
				w.WriteHeader(308)
				return
			}
			answer(w, g.msg.ID, `{}`)
		})
		cl := call(mcp.MethodToolsCall, `"name":"t"`)
		cl.Authorization = "Bearer x"
		mustDo(t, newClient(t, p.URL, opt), cl)
		a, b := p.next(t), p.next(t)
		if b.method != "POST" || b.path != "/moved?x=1" || string(a.body) != string(b.body) || b.header.Get("Authorization") != "Bearer x" {
			t.Fatalf("%s %s %s", b.method, b.path, b.body)
		}
	})
}

func TestE41RetryAfterIsHonouredOnceForReadOnlyMethods(t *testing.T) {
	for method, want := range map[string]int{mcp.MethodToolsList: 2, mcp.MethodToolsCall: 1} {
		p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		})
		c := newClient(t, p.URL, HTTPOptions{})
		_, err := c.Do(t.Context(), call(method, `"name":"t"`), nil)
		if f, ok := err.(*Failure); !ok || f.Cause != Busy || f.RetryAfter != time.Second || len(p.seen) != want {
			t.Errorf("%s: %v after %d requests", method, err, len(p.seen))
		}
	}
}

func TestRetryAfterValues(t *testing.T) {
	now := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"3": 3 * time.Second, " 3 ": 3 * time.Second, "-1": 0, "x": 0, "": 0, "99999999999": 0,
		"Tue, 28 Jul 2026 00:00:07 GMT": 7 * time.Second, "Tue, 28 Jul 2020 00:00:07 GMT": 0,
	} {
		if got := retryAfter([]string{v}, now); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
	if retryAfter(nil, now) != 0 {
		t.Error("no value")
	}
}

func TestE39UnsupportedVersionIsSentAgainOnce(t *testing.T) {
	for _, tc := range []struct {
		name, supported string
		accept          []string
		requests        int
		version         string
	}{
		{"the very version just sent", `["2026-07-28"]`, nil, 2, "2026-07-28"},
		{"a draft that is accepted", `["2025-11-25","DRAFT-2026-v1"]`, []string{"DRAFT-2026-v1"}, 2, "DRAFT-2026-v1"},
		{"nothing mutual", `["2025-11-25"]`, nil, 1, ""},
		{"nothing at all", `null`, nil, 1, ""},
	} {
		eachTransport(t, func(t *testing.T, opt HTTPOptions) {
			opt.Versions = tc.accept
			p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
				if n == 0 {
					refuseWith(w, g.msg.ID, 400, mcp.CodeUnsupportedVersion, `{"supported":`+tc.supported+`}`)
					return
				}
				answer(w, g.msg.ID, `{}`)
			})
			ans := mustDo(t, newClient(t, p.URL, opt), call(mcp.MethodToolsCall, `"name":"t"`))
			if len(p.seen) != tc.requests || (ans.Error == nil) != (tc.requests == 2) {
				t.Fatalf("%s: %d requests, %+v", tc.name, len(p.seen), ans)
			}
			if tc.requests == 1 {
				return
			}
			a, b := p.next(t), p.next(t)
			inBody, _ := rawjson.Text(rawjson.Get(rawjson.Get(b.msg.Params, "_meta"), mcp.MetaProtocolVersion))
			if a.msg.ID == b.msg.ID || b.header.Get("Mcp-Protocol-Version") != tc.version || inBody != tc.version {
				t.Fatalf("%s: second request %v %s", tc.name, b.header, b.body)
			}
		})
	}
}

func TestAnEndlessRefusalEnds(t *testing.T) {
	for _, code := range []int{mcp.CodeUnsupportedVersion, mcp.CodeHeaderMismatch} {
		p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
			refuseWith(w, g.msg.ID, 400, code, `{"supported":["2026-07-28"]}`)
		})
		ans := mustDo(t, newClient(t, p.URL, HTTPOptions{}), call(mcp.MethodToolsCall, `"name":"é"`))
		if ans.Error == nil || ans.Error.Code != code || len(p.seen) > 4 {
			t.Fatalf("%d: %+v after %d requests", code, ans, len(p.seen))
		}
	}
}

// B-25: refresh to the last page, recompute, send once more under a new id.
func TestB25HeaderMismatchRefreshesEveryPageAndSendsOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
			switch {
			case g.msg.Method == mcp.MethodToolsList && rawjson.Get(g.msg.Params, "cursor") == nil:
				answer(w, g.msg.ID, `{"tools":[`+plainTool+`],"nextCursor":""}`)
			case g.msg.Method == mcp.MethodToolsList:
				answer(w, g.msg.ID, `{"tools":[`+goodTool+`]}`)
			case g.header.Get("Mcp-Param-R") != "eu":
				refuseWith(w, g.msg.ID, 400, mcp.CodeHeaderMismatch, "null")
			default:
				answer(w, g.msg.ID, `{"content":[]}`)
			}
		})
		c := newClient(t, p.URL, opt)
		cl := call(mcp.MethodToolsCall, `"name":"good","arguments":{"r":"eu"}`)
		cl.Params = []byte(strings.Replace(string(cl.Params), `"_meta":{`, `"_meta":{"progressToken":1,`, 1))
		if ans := mustDo(t, c, cl); ans.Error != nil {
			t.Fatal(ans.Error)
		}
		first, list := p.next(t), p.next(t)
		if rawjson.Has(rawjson.Get(list.msg.Params, "_meta"), "progressToken") || !rawjson.Has(rawjson.Get(list.msg.Params, "_meta"), mcp.MetaClientCapabilities) {
			t.Fatalf("refresh %s", list.body)
		}
		if page := p.next(t); string(rawjson.Get(page.msg.Params, "cursor")) != `""` {
			t.Fatalf("second page %s", page.body)
		}
		if again := p.next(t); again.msg.ID == first.msg.ID || string(again.msg.Params) != string(first.msg.Params) {
			t.Fatalf("resent %s", again.body)
		}
		mustDo(t, c, cl)
		if g := p.next(t); g.header.Get("Mcp-Param-R") != "eu" {
			t.Fatal("the schema was not remembered")
		}
		p.none(t)
	})
}

func TestB23ACallToAnExcludedToolIsRefusedLocally(t *testing.T) {
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
		answer(w, g.msg.ID, `{"tools":[`+badTool+`,`+goodTool+`]}`)
	})
	c := newClient(t, p.URL, HTTPOptions{})
	if ans := mustDo(t, c, call(mcp.MethodToolsList, "")); string(ans.Result) != `{"tools":[`+goodTool+`]}` {
		t.Fatalf("list %s", ans.Result)
	}
	p.next(t)
	ans := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"bad"`))
	if ans.Error == nil || ans.Error.Code != jsonrpc.CodeInvalidParams || !rawjson.Has(ans.Error.Data, "bridge") {
		t.Fatalf("%+v", ans)
	}
	p.none(t)
}

func TestWhatNoHeaderCanCarryIsRefusedLocally(t *testing.T) {
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { answer(w, g.msg.ID, `{}`) })
	c := newClient(t, p.URL, HTTPOptions{})
	for method, params := range map[string]string{
		"bad\r\nX: y": ``, "é": ``, mcp.MethodResourcesRead: `"uri":"` + strings.Repeat("x", maxHeaderBytes+1) + `"`,
	} {
		if ans := mustDo(t, c, call(method, params)); ans.Error == nil || !rawjson.Has(ans.Error.Data, "bridge") {
			t.Errorf("%q: %+v", method, ans)
		}
	}
	cl := call(mcp.MethodToolsList, "")
	cl.Authorization = "a\r\nX: y"
	mustDo(t, c, cl)
	if g := p.next(t); g.header.Get("Authorization") != "" || g.header.Get("X") != "" {
		t.Errorf("headers %v", g.header)
	}
}

func TestNotificationsComeInOrderAndBeforeTheAnswer(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 100 {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":%d}}\n\n", i)
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":1}}\n\n", g.msg.ID)
		})
		next := int64(0)
		ans, err := newClient(t, p.URL, opt).Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), func(m jsonrpc.Message) {
			if n, _ := rawjson.Int(rawjson.Get(m.Params, "progress")); n != next {
				t.Errorf("progress %d, want %d", n, next)
			}
			next++
		})
		if err != nil || next != 100 || string(ans.Result) != `{"x":1}` {
			t.Fatalf("%v after %d notifications", err, next)
		}
	})
}

func TestE37CancellingTheContextClosesTheStream(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		gone := make(chan struct{})
		p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", progress)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(gone)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		_, err := newClient(t, p.URL, opt).Do(ctx, call(mcp.MethodToolsCall, `"name":"t"`), func(jsonrpc.Message) { cancel(why) })
		if f, ok := err.(*Failure); !ok || f.Cause != Canceled || !errors.Is(err, why) {
			t.Fatalf("error %v", err)
		}
		<-gone
	})
}

func TestTheDeadlineOfTheCallIsATimeout(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		release := make(chan struct{})
		p := newScripted(t, func(_ int, _ http.ResponseWriter, _ *got, _ *http.Request) { <-release })
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := newClient(t, p.URL, opt).Do(ctx, call(mcp.MethodToolsCall, `"name":"t"`), nil)
		if f, ok := err.(*Failure); !ok || f.Cause != Timeout {
			t.Fatalf("error %v", err)
		}
	})
}

func TestUnreachableSaysWhyAndThatNothingWasSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + ln.Addr().String() + "/mcp?token=secret"
	_ = ln.Close()
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		_, err := newClient(t, url, opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		f, ok := err.(*Failure)
		if !ok || f.Cause != Unreachable || f.Sent || !strings.Contains(f.Error(), "refused") || !strings.Contains(f.Error(), ln.Addr().String()) || strings.Contains(f.Error(), "secret") {
			t.Fatalf("error %v", err)
		}
	})
}

func TestCloseEndsCallsAndRefusesNewOnes(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		begun, release := make(chan struct{}), make(chan struct{})
		p := newScripted(t, func(_ int, _ http.ResponseWriter, _ *got, _ *http.Request) { close(begun); <-release })
		defer close(release)
		c := newClient(t, p.URL, opt)
		go func() { <-begun; _ = c.Close() }()
		for range 2 {
			_, err := c.Do(context.Background(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
			if f, ok := err.(*Failure); !ok || f.Cause != Canceled {
				t.Fatalf("error %v", err)
			}
		}
	})
}

func TestEndpointURLs(t *testing.T) {
	for _, u := range []string{"", "ftp://x", "http://", "http://:80", "//x", "http://u:p@x", "http://x:y", "http://\x00"} {
		if _, err := NewHTTP(HTTPOptions{URL: u}); err == nil {
			t.Errorf("%q was accepted", u)
		}
	}
}

// C-18 and the ways in which a listen ends.
func TestListen(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream string
		want   string // methods
		end    func(err error) bool
	}{
		{"graceful", note("acknowledged", "ID") + note("tools/list_changed", "ID") + "data: " + okBody + "\n\n", "acknowledged tools/list_changed", func(err error) bool { return err == nil }},
		{"I-2 integer id as a string", note("acknowledged", `"ID"`) + "data: " + okBody + "\n\n", "acknowledged", func(err error) bool { return err == nil }},
		{"another subscription's", note("acknowledged", "ID") + note("tools/list_changed", "999999") + "data: " + okBody + "\n\n", "acknowledged", func(err error) bool { return err == nil }},
		{"the stream just stops", note("acknowledged", "ID"), "acknowledged", func(err error) bool {
			f, ok := err.(*Failure)
			return ok && f.Cause == Lost
		}},
		{"refused", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n\n", "", func(err error) bool {
			e, ok := err.(*jsonrpc.Error)
			return ok && e.Code == -32601
		}},
	} {
		eachTransport(t, func(t *testing.T, opt HTTPOptions) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
				raw(200, "text/event-stream", tc.stream)(w, g.msg.ID)
			})
			var seen []string
			err := newClient(t, p.URL, opt).Listen(t.Context(), call(mcp.MethodListen, `"notifications":{}`), func(m jsonrpc.Message) {
				seen = append(seen, strings.TrimPrefix(strings.TrimPrefix(m.Method, "notifications/"), "subscriptions/"))
			})
			if !tc.end(err) || strings.Join(seen, " ") != tc.want {
				t.Fatalf("%s: %v, %v", tc.name, err, seen)
			}
		})
	}
}

func note(what, id string) string {
	if what == "acknowledged" {
		what = "subscriptions/acknowledged"
	}
	return `data: {"jsonrpc":"2.0","method":"notifications/` + what + `","params":{"_meta":{"` + mcp.MetaSubscriptionID + `":` + id + "}}}\n\n"
}

// E-44: only the context ends a quiet subscription.
func TestE44AQuietListenStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go func() {
			if r, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				_ = r.Body.Close()
				_, _ = fmt.Fprint(server, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
			}
		}()
		c, err := NewHTTP(HTTPOptions{URL: "http://x/", Dial: func(context.Context, string, string) (net.Conn, error) { return client, nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		begun := time.Now()
		err = c.Listen(ctx, call(mcp.MethodListen, ""), nil)
		if f, ok := err.(*Failure); !ok || f.Cause != Timeout || time.Since(begun) != 24*time.Hour {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
	})
}
