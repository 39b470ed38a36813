package legacy

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"n":1}}`

func TestPlainResultIsJSON_E4(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	resp := p.post(ping)
	want(t, "status", resp.StatusCode, 200)
	want(t, "type", resp.Header.Get("Content-Type"), "application/json")
	body := text(t, resp)
	want(t, "body", body, `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	want(t, "length", resp.ContentLength, len(body))
}

func TestLargeResultHasContentLength(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	big := strings.Repeat("x", 200_000)
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"s":"` + big + `"}}`)
	body := text(t, resp)
	want(t, "length", resp.ContentLength, len(body))
	want(t, "body", body, `{"jsonrpc":"2.0","id":1,"result":{"s":"`+big+`"}}`)
}

func TestNotificationsAndAnswersAre202WithoutBody_E3(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	for _, msg := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"leg","result":{}}`,
		`{"jsonrpc":"2.0","id":"nobody asked","error":{"code":-1,"message":"no"}}`,
	} {
		status, body := p.call(msg)
		want(t, "status", status, 202)
		want(t, "body", body, "")
	}
	want(t, "notified", b.last().notified, []string{"notifications/initialized"})
	want(t, "answered", b.last().answered, []string{`"leg"`, `"nobody asked"`})
}

func TestVersionHeader_A34_E10(t *testing.T) {
	for _, tc := range []struct {
		session mcp.Version
		header  string
		status  int
	}{
		{mcp.V20251125, "", 200},
		{mcp.V20251125, "2025-11-25", 200},
		{mcp.V20251125, "2025-03-26", 200}, // supported but different
		{mcp.V20251125, "2026-07-28", 400}, // no legacy version
		{mcp.V20251125, "1999-01-01", 400},
		{mcp.V20250618, "nonsense", 400},
		{mcp.V20250326, "nonsense", 200}, // has no such header
		{mcp.V20241105, "nonsense", 200},
	} {
		t.Run(string(tc.session)+" "+tc.header, func(t *testing.T) {
			_, p := serve(t, Options{}, newFake())
			p.initialize(tc.session)
			p.version = ""
			if tc.header != "" {
				p.header.Set("MCP-Protocol-Version", tc.header)
			}
			status, _ := p.call(ping)
			want(t, "status", status, tc.status)
		})
	}
}

func TestVersionHeaderOnInitializeIsIgnored_A34(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.header.Set("MCP-Protocol-Version", "2031-01-01")
	p.header.Set("Mcp-Method", "initialize")
	want(t, "status", p.initialize(mcp.V20251125).StatusCode, 200)
}

func TestUnsupportedVersionWithoutSessionIs400_A34(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.header.Set("MCP-Protocol-Version", "2031-01-01")
	want(t, "status", p.post(ping).StatusCode, 400)
}

func TestModernRequestsPassUnchanged_A11(t *testing.T) {
	b := newFake()
	var got string
	b.modern = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		got = string(body)
		w.WriteHeader(299)
	})
	_, p := serve(t, Options{}, b)
	for _, msg := range []string{
		`{"jsonrpc":"2.0","id":1,  "method":"server/discover"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		got = ""
		want(t, "status", p.post(msg).StatusCode, 299)
		want(t, "body", got, msg)
	}
	p.initialize(mcp.V20251125)
	want(t, "a legacy session is not modern", p.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`).StatusCode, 200)
}

func TestModernRequestsAreRefusedWithALegacyError_A11(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	status, body := p.call(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`)
	want(t, "status", status, 400)
	for _, code := range []string{"-32020", "-32021", "-32022"} {
		if strings.Contains(body, code) {
			t.Errorf("modern error %s would stop the client from falling back", code)
		}
	}
}

func TestRepeatedIDsNeverCross_B1(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	const n = 20
	answers := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"hold","params":{"caller":"` + string(rune('a'+i)) + `"}}`)
			answers[i] = text(t, resp)
		})
	}
	calls := make([]*call, n)
	for i := range calls {
		calls[i] = <-b.held
	}
	for i := n - 1; i >= 0; i-- { // in another order than they came
		calls[i].finish(string(calls[i].req.Params))
	}
	wg.Wait()
	for i, got := range answers {
		want(t, "answer", got, `{"jsonrpc":"2.0","id":1,"result":{"caller":"`+string(rune('a'+i))+`"}}`)
	}
}

func TestRefusalBeforeCommitKeepsStatusAndChallenge_H3(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"refuse"}`)
	want(t, "status", resp.StatusCode, 401)
	want(t, "challenge", resp.Header.Get("WWW-Authenticate"), `Bearer scope="x"`)
}

func TestRefusalAfterCommitMeetsTheNextRequest_H4(t *testing.T) {
	b := newFake()
	var log bytes.Buffer
	_, p := serve(t, Options{Logger: zerolog.New(&log).Level(zerolog.InfoLevel)}, b)
	p.header.Set("Authorization", "Bearer secret")
	p.initialize(mcp.V20251125)
	go func() {
		k := <-b.held
		k.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/message"}`))
		if k.Refuse(&downstream.Refusal{Status: 401, Challenge: []string{"Bearer"}}) {
			t.Error("refused after the stream had begun")
		}
		k.finish(`{"isError":true}`)
	}()
	_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)).rest()
	resp := p.post(ping)
	want(t, "next", resp.StatusCode, 401)
	want(t, "challenge", resp.Header.Get("WWW-Authenticate"), "Bearer")
	want(t, "the one after", p.post(ping).StatusCode, 200)
	line := log.String()
	want(t, "the log tells it", strings.Contains(line, `"level":"info","session_id":"`+p.session[:8]+`","status":401,"message":"the server refused a client's credentials after`), true)
	want(t, "and not which", strings.Contains(line, "secret"), false)
}

func TestAbandonedExchangeIsAnEmptyStream_E9(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"abandon"}`)
	want(t, "status", resp.StatusCode, 200)
	want(t, "events", len(readEvents(t, resp).rest()), 0)
}

// Who takes no event stream is given none, nor a body: clients take 202 without one for what it is.
func TestACancelledCallIsNoStreamForWhoTakesJSONOnly_E5(t *testing.T) {
	abandon := `{"jsonrpc":"2.0","id":1,"method":"abandon"}`
	for accept, status := range map[string]int{"application/json": 202, "text/event-stream": 200, "application/json, text/event-stream": 200} {
		for _, body := range []string{abandon, `[` + abandon + `,` + note + `]`} {
			_, p := serve(t, Options{}, newFake())
			p.initialize(mcp.V20250326)
			r := p.request(http.MethodPost, body)
			r.Header.Set("Accept", accept)
			resp := p.do(r)
			want(t, accept+" gets", resp.StatusCode, status)
			kind := ""
			if status == 200 {
				kind = "text/event-stream"
			}
			want(t, "type", resp.Header.Get("Content-Type"), kind)
			want(t, "body", text(t, resp), "")
		}
	}
}

func TestPanickingBackendAnswersAndLeaksNothing(t *testing.T) {
	h, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	status, body := p.call(`{"jsonrpc":"2.0","id":7,"method":"panic"}`)
	want(t, "status", status, 200)
	if !strings.Contains(body, `"id":7`) || !strings.Contains(body, "-32603") {
		t.Errorf("body = %s", body)
	}
	want(t, "in flight", h.gate.Count(), 0)
}

func TestOtherMethodsAre405(t *testing.T) {
	_, p := serve(t, Options{NoGET: true}, newFake())
	resp := p.do(p.request("PUT", "{}"))
	want(t, "PUT", resp.StatusCode, 405)
	want(t, "Allow", resp.Header.Get("Allow"), "GET, POST, DELETE, OPTIONS")
	want(t, "why", text(t, resp), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"method is not allowed here; use GET, POST, DELETE, OPTIONS","data":{"bridge":{}}}}`)
	p.initialize(mcp.V20251125)
	resp = p.get("")
	want(t, "GET when not offered (A-31)", resp.StatusCode, 405)
	if resp.Header.Get("Allow") == "" {
		t.Error("no Allow header")
	}
}

func TestGetWithoutASessionIs405(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	resp := p.get("")
	want(t, "GET", resp.StatusCode, 405)
	want(t, "Allow", resp.Header.Get("Allow"), "POST, OPTIONS")
	want(t, "why", text(t, resp), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"method is not allowed here without a session; use POST, OPTIONS","data":{"bridge":{}}}}`)
	want(t, "DELETE", p.do(p.request("DELETE", "")).StatusCode, 405)
	r := p.request(http.MethodGet, "")
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	resp = p.do(r)
	want(t, "a browser", resp.StatusCode, 405)
	if why := text(t, resp); !strings.Contains(why, "give this address to an MCP client") {
		t.Errorf("a person is told %s", why)
	}
}

// A late challenge is for the next request that the same credentials begin. What
// only runs once, answers and notifications, is taken whoever was refused.
func TestLateRefusalSwallowsNoAnswerAndNoNotification_H4(t *testing.T) {
	const note, reply = `{"jsonrpc":"2.0","method":"notifications/x"}`, `{"jsonrpc":"2.0","id":"q","result":{}}`
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.header.Set("Authorization", "Bearer one")
	p.initialize(mcp.V20250326)
	go func() {
		k := <-b.held
		k.Send([]byte(note))
		k.Refuse(&downstream.Refusal{Status: 403, Challenge: []string{"Bearer"}})
		k.finish(`{"isError":true}`)
	}()
	first := readEvents(t, p.post(hold)).rest()
	want(t, "an answer", p.post(reply).StatusCode, 202)
	want(t, "a notification", p.post(note).StatusCode, 202)
	want(t, "a batch", p.post("["+reply+","+note+"]").StatusCode, 202)
	last, _, _ := strings.Cut(first[0], "|")
	want(t, "a lost stream", len(readEvents(t, p.get(last)).rest()), 1)
	conv := b.last()
	conv.mu.Lock()
	want(t, "answers", conv.answered, []string{`"q"`, `"q"`})
	want(t, "notifications", len(conv.notified), 2)
	conv.mu.Unlock()
	p.header.Set("Authorization", "Bearer two") // fresh ones were not refused
	want(t, "a request with other credentials", p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`).StatusCode, 200)
	p.header.Set("Authorization", "Bearer one")
	want(t, "a request", p.post(ping).StatusCode, 403)
}
