package streamable

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
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
		eachTransport(t, func(t *testing.T, opt Options) {
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
			if second.header.Get("Authorization") != "Bearer static" || first.method != "POST" || first.path != "/mcp?tenant=1" {
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
	c := newClient(t, p.URL, Options{})
	cl := call(mcp.MethodPing, "")
	cl.Params = []byte(strings.Replace(string(cl.Params), "2026-07-28", "DRAFT-2026-v1", 1))
	mustDo(t, c, cl)
	if v := p.next(t).header.Get("Mcp-Protocol-Version"); v != "DRAFT-2026-v1" {
		t.Fatalf("version header %q", v)
	}
}

func TestH3ChallengesSurvive(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) {
			w.Header().Add("WWW-Authenticate", `Bearer error="insufficient_scope", scope="a b"`)
			w.Header().Add("WWW-Authenticate", `Basic`)
			http.Error(w, "no", http.StatusForbidden)
		})
		_, err := newClient(t, p.URL, opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		f := err.(*upstream.Failure)
		if f.Status != 403 || len(f.Challenge) != 2 || f.Challenge[0] != `Bearer error="insufficient_scope", scope="a b"` {
			t.Fatalf("%+v", f)
		}
	})
}

func TestWhatNoHeaderCanCarryIsRefusedLocally(t *testing.T) {
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { answer(w, g.msg.ID, `{}`) })
	c := newClient(t, p.URL, Options{})
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
	eachTransport(t, func(t *testing.T, opt Options) {
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
	eachTransport(t, func(t *testing.T, opt Options) {
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
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Canceled || !errors.Is(err, why) {
			t.Fatalf("error %v", err)
		}
		<-gone
	})
}

func TestTheDeadlineOfTheCallIsATimeout(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		release := make(chan struct{})
		p := newScripted(t, func(_ int, _ http.ResponseWriter, _ *got, _ *http.Request) { <-release })
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := newClient(t, p.URL, opt).Do(ctx, call(mcp.MethodToolsCall, `"name":"t"`), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Timeout {
			t.Fatalf("error %v", err)
		}
	})
}

func TestUnreachableSaysWhyAndThatNothingWasSent(t *testing.T) {
	const url = "http://" + testport.Closed + "/mcp?token=secret"
	eachTransport(t, func(t *testing.T, opt Options) {
		_, err := newClient(t, url, opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		f, ok := err.(*upstream.Failure)
		if !ok || f.Cause != upstream.Unreachable || f.Sent || !strings.Contains(f.Error(), "refused") || !strings.Contains(f.Error(), testport.Closed) || strings.Contains(f.Error(), "secret") {
			t.Fatalf("error %v", err)
		}
	})
}

func TestCloseEndsCallsAndRefusesNewOnes(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		begun, release := make(chan struct{}), make(chan struct{})
		p := newScripted(t, func(_ int, _ http.ResponseWriter, _ *got, _ *http.Request) { close(begun); <-release })
		defer close(release)
		c := newClient(t, p.URL, opt)
		go func() { <-begun; _ = c.Close() }()
		for range 2 {
			_, err := c.Do(context.Background(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
			if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Canceled {
				t.Fatalf("error %v", err)
			}
		}
	})
}

func TestEndpointURLs(t *testing.T) {
	for _, u := range []string{"", "ftp://x", "http://", "http://:80", "//x", "http://u:p@x", "http://x:y", "http://\x00", "http://u:sesame/p@x", "http://u:sesame#p@x"} {
		if _, err := New(Options{URL: u}); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q: %v", u, err)
		}
	}
}

// D-15: before a handshake is done nothing has left, so that a person's answer is sent again.
func TestD15AHandshakeThatBreaksOffHasSentNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			_ = nc.Close()
		}
	}()
	_, err = newClient(t, "https://"+ln.Addr().String(), Options{}).Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Unreachable || f.Sent || !strings.Contains(f.Error(), "closed it at once") {
		t.Errorf("%+v", err)
	}
}
