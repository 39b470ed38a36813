package legacy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/mcp"
)

func TestBadInputGetsTheRightStatusAndTheIDWhenItCanBeRecovered_E3(t *testing.T) {
	big := `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"s":"` + strings.Repeat("x", 2000) + `"}}`
	for _, tc := range []struct {
		name, body string
		header     [2]string
		status     int
		contains   []string
	}{
		{name: "not JSON", body: `{"jsonrpc":`, status: 400, contains: []string{"-32700"}},
		{name: "not JSON, id readable", body: `{"jsonrpc":"2.0","id":5,"method":"x","params":{`, status: 400, contains: []string{"-32700", `"id":5`}},
		{name: "empty body", body: ``, status: 400, contains: []string{"-32700"}},
		{name: "two values", body: `{} {}`, status: 400, contains: []string{"-32700"}},
		{name: "duplicate members", body: `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"a":1,"a":2}}`, status: 400, contains: []string{`"id":5`, `"error"`}},
		{name: "duplicate members of arguments", body: `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{"x":[{"a":1,"\u0061":2}]}}}`, status: 400, contains: []string{`"id":5`, "duplicate"}},
		{name: "invalid UTF-8", body: "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}", status: 400, contains: []string{`"id":5`, "-32700"}},
		{name: "no version", body: `{"id":5,"method":"echo"}`, status: 400, contains: []string{"-32600", `"id":5`}},
		{name: "null id", body: `{"jsonrpc":"2.0","id":null,"method":"echo"}`, status: 400, contains: []string{"-32600"}},
		{name: "params no object", body: `{"jsonrpc":"2.0","id":5,"method":"echo","params":[1]}`, status: 400, contains: []string{`"id":5`}},
		{name: "string", body: `"hello"`, status: 400, contains: []string{"-32600"}},
		{name: "forbidden batch (E-2)", body: `[{"jsonrpc":"2.0","id":5,"method":"echo"}]`, status: 400, contains: []string{"-32600"}},
		{name: "response to nothing (C.9)", body: `{"jsonrpc":"2.0","id":5,"result":{}}`, status: 202},
		{name: "oversized body", body: big, status: 413, contains: []string{"1000 bytes"}},
		{name: "wrong content type", body: ping, header: [2]string{"Content-Type", "text/plain"}, status: 415, contains: []string{`"error":{"code":-32600,"message":"Content-Type must be application/json","data":{"bridge":{}}}`}},
		{name: "no content type", body: ping, header: [2]string{"Content-Type", ""}, status: 415, contains: []string{"Content-Type must be application/json"}},
		{name: "compressed", body: ping, header: [2]string{"Content-Encoding", "gzip"}, status: 415, contains: []string{"must not be compressed"}},
		{name: "compressed twice", body: ping, header: [2]string{"Content-Encoding", "identity, br"}, status: 415},
		{name: "not compressed", body: ping, header: [2]string{"Content-Encoding", "Identity"}, status: 200},
		{name: "content type with charset", body: ping, header: [2]string{"Content-Type", "Application/JSON; charset=utf-8"}, status: 200},
		{name: "unusable accept (E-5)", body: ping, header: [2]string{"Accept", "text/html, image/*"}, status: 406, contains: []string{`"error":{"code":-32600,"message":"Accept must allow application/json or text/event-stream","data":{"bridge":{}}}`}},
		{name: "refused accept (E-5)", body: ping, header: [2]string{"Accept", "application/json;q=0"}, status: 406},
		{name: "any accept (E-5)", body: ping, header: [2]string{"Accept", "*/*"}, status: 200},
		{name: "no accept (E-5)", body: ping, header: [2]string{"Accept", ""}, status: 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, p := serve(t, Options{MaxBody: 1000}, newFake())
			p.initialize(mcp.V20251125)
			bystander := *p
			if tc.header[0] != "" {
				p.header = http.Header{tc.header[0]: {tc.header[1]}}
				if tc.header[1] == "" {
					p.header[tc.header[0]] = nil
				}
			}
			status, body := p.call(tc.body)
			want(t, "status", status, tc.status)
			for _, s := range tc.contains {
				if !strings.Contains(body, s) {
					t.Errorf("no %s in %s", s, body)
				}
			}
			if status >= 400 && len(tc.contains) > 0 && !strings.Contains(body, `"id":5`) && strings.Contains(body, `"id"`) {
				t.Errorf("an unknown id must be left out: %s", body)
			}
			bystander.header = http.Header{}
			want(t, "the session still works", bystander.post(ping).StatusCode, 200)
		})
	}
}

func TestOversizedChunkedBodyIs413(t *testing.T) {
	_, p := serve(t, Options{MaxBody: 100}, newFake())
	r := p.request(http.MethodPost, "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 500))), -1
	want(t, "status", p.do(r).StatusCode, 413)
}

func TestChunkedAndLargeBodiesAreRead(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	for _, n := range []int{10, unproven - 100, unproven + 1, 500_000} {
		for _, length := range []int64{-1, 0} {
			msg := `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"s":"` + strings.Repeat("y", n) + `"}}`
			r := p.request(http.MethodPost, msg)
			if length < 0 {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(msg)), -1
			}
			resp := p.do(r)
			want(t, "body", len(text(t, resp)), n+len(`{"jsonrpc":"2.0","id":1,"result":{"s":""}}`))
		}
	}
}

func TestABrokenAnswerEndsItsQuestionAndHasNoIDInItsError_C9(t *testing.T) {
	const broken = `{"jsonrpc":"2.0","id":"q","error":{}}`
	const both = `{"jsonrpc":"2.0","id":"q","result":{},"error":{"code":1,"message":""}}`
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	for _, text := range []string{broken, both} {
		status, body := p.call(text)
		want(t, "status", status, http.StatusBadRequest)
		if strings.Contains(body, `"id"`) || !strings.Contains(body, "-32600") {
			t.Errorf("%s is answered %s", text, body)
		}
	}
	p.session = "gone"
	if _, body := p.call(`{"jsonrpc":"2.0","id":"q","result":{}}`); strings.Contains(body, `"id"`) {
		t.Errorf("without its session an answer is answered %s", body)
	}
	want(t, "answers", b.last().answered, []string{`"q"`, `"q"`})
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.send(broken)
		want(t, "on a line", l.next(), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"error must have an integer code and a string message","data":{"bridge":{}}}}`)
		synctest.Wait()
		want(t, "answers", b.last().answered, []string{`"q"`})
	})
}
