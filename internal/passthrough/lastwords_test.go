package passthrough

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

const (
	asksOne  = `{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{}}`
	asksMore = `[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"2","method":"tools/list"}]`
	noted    = `{"jsonrpc":"2.0","method":"notifications/x"}`
)

// begins is a server whose response begins with some text, and goes on until its request is given
// up. Without a text it does not begin.
type begins struct {
	kind, text string
	coded      bool
	asked      chan struct{} // has a value when the client has what there is
}

// RoundTrip implements http.RoundTripper.
// lapsesAfter returns a context that ends as the endpoint ends those of what only listens, once its credentials have had their time.
func lapsesAfter(ctx context.Context, wait time.Duration) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	time.AfterFunc(wait, func() { end(downstream.ErrLapsed) })
	return ctx
}

func (s begins) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.text == "" {
		s.asked <- struct{}{}
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	header := http.Header{"Content-Type": {s.kind}}
	if s.coded {
		header.Set("Content-Encoding", "gzip")
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, ContentLength: -1, Request: r,
		Body: io.NopCloser(io.MultiReader(strings.NewReader(s.text), givenUp{r.Context(), s.asked})),
	}, nil
}

// givenUp is a body of which nothing comes any more.
type givenUp struct {
	ctx   context.Context
	asked chan struct{}
}

func (g givenUp) Read([]byte) (int, error) {
	g.asked <- struct{}{}
	<-g.ctx.Done()
	return 0, g.ctx.Err()
}

// cutOffAt has a request handed on to a server and the proxy closed when the client has what the server
// has said. aborted says that the response was not ended.
func cutOffAt(server begins, method, body string) (rec *httptest.ResponseRecorder, aborted bool) {
	server.asked = make(chan struct{}, 1)
	p := New(Options{URL: &url.URL{Scheme: "http", Host: "server"}, Wrap: func(http.RoundTripper) http.RoundTripper { return server }})
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Mcp-Method", method)
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(body))), nil }
	r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{})) // else ReverseProxy does not abort
	rec = httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { aborted = recover() == http.ErrAbortHandler }()
		p.ServeHTTP(rec, r)
	}()
	<-server.asked
	p.Close()
	<-done
	return rec, aborted
}

// A request that is cut off is answered as far as its response lets that be said.
func TestWhoIsCutOffAtTheServerIsTold(t *testing.T) {
	const stream, plain = "text/event-stream", "application/json"
	word := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"` + gaveUp + `","data":{"bridge":{"reason":"shutdown"}}}}`
	}
	event := func(id string) string { return "event: message\ndata: " + word(id) + "\n\n" }
	const first = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
	for name, tc := range map[string]struct {
		server  begins
		asks    string
		status  int
		want    string
		aborted bool
	}{
		"before the response":                {begins{}, asksOne, 502, word(`"a-1"`), false},
		"an array, before the response":      {begins{}, asksMore, 502, "[" + word("1") + "," + word(`"2"`) + "]", false},
		"a notification":                     {begins{}, noted, 502, gaveUp + "\n", false},
		"between two events":                 {begins{kind: stream, text: first}, asksOne, 200, first + "\n\n" + event(`"a-1"`), false},
		"within an event":                    {begins{kind: stream + "; charset=utf-8", text: first + "data: {"}, asksOne, 200, first + "data: {\n\n" + event(`"a-1"`), false},
		"an array, within a stream":          {begins{kind: stream, text: first}, asksMore, 200, first + "\n\n" + event("1") + event(`"2"`), false},
		"within a body that is no stream":    {begins{kind: plain, text: `{"jsonrpc"`}, asksOne, 200, `{"jsonrpc"`, true},
		"within a stream that is compressed": {begins{kind: stream, text: "\x1f\x8b", coded: true}, asksOne, 200, "\x1f\x8b", true},
		"within a stream of no request":      {begins{kind: stream, text: first}, noted, 200, first, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, aborted := cutOffAt(tc.server, "tools/call", tc.asks)
				if rec.Code != tc.status || rec.Body.String() != tc.want || aborted != tc.aborted {
					t.Errorf("%d %q, aborted: %t", rec.Code, rec.Body, aborted)
				}
				if kind := rec.Header().Get("Content-Type"); tc.status == 502 && tc.asks != noted && kind != plain {
					t.Errorf("as %q", kind)
				}
			})
		})
	}
}

// A subscription has an end that is none for the worse, as one at a process has.
func TestASubscriptionThatIsHandedOnEndsGracefully(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const listen = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}`
		rec, aborted := cutOffAt(begins{kind: "text/event-stream", text: ":\n\n"}, mcp.MethodListen, listen)
		const want = `{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`
		if aborted || !strings.HasSuffix(rec.Body.String(), "data: "+want+"\n\n") {
			t.Errorf("it ends with %q, aborted: %t", rec.Body, aborted)
		}
		if rec, _ := cutOffAt(begins{}, mcp.MethodListen, listen); rec.Code != http.StatusBadGateway || !strings.Contains(rec.Body.String(), "-32603") {
			t.Errorf("one that has yet to begin ends with %d %q", rec.Code, rec.Body)
		}
	})
}

// So it has when its token expires. Nobody has failed then.
func TestASubscriptionThatIsHandedOnEndsWithItsToken_E24(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}`
	const ended = `data: {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`
	for name, tc := range map[string]struct {
		method, body string
		serves       func(net.Conn, *http.Request)
		status       int
		want         string
	}{
		"a subscription":                  {http.MethodPost, listen, first(streams200, again(":\n\n")), http.StatusOK, ended},
		"a subscription, before its head": {http.MethodPost, listen, silent, http.StatusBadGateway, `"id":5,"error":{"code":-32603,"message":"` + downstream.ErrLapsed.Error()},
		"a GET":                           {http.MethodGet, "", first(streams200, again(":\n\n")), http.StatusOK, ":\n\n"},
		"a GET, before its head":          {http.MethodGet, "", silent, http.StatusBadGateway, downstream.ErrLapsed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				r := asking(tc.method == http.MethodPost, tc.body)
				if r.Method = tc.method; tc.method == http.MethodPost {
					r.Header.Set(mcp.HeaderMethod, mcp.MethodListen)
				}
				ctx := lapsesAfter(r.Context(), 20*time.Second)
				rec, aborted, took := passedTo(&slow{serve: tc.serves}, Options{Log: zerolog.New(&log)}, r.WithContext(ctx))
				if aborted || took != 20*time.Second || rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.want) {
					t.Errorf("it ends after %v with %d %q, aborted: %t", took, rec.Code, rec.Body, aborted)
				}
				if log.Len() > 0 {
					t.Errorf("the log says %s", &log)
				}
			})
		})
	}
}

// Nobody is told anything who has left, whatever ends first.
func TestWhoHasLeftIsToldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := begins{asked: make(chan struct{}, 1)}
		p := New(Options{URL: &url.URL{Scheme: "http", Host: "server"}, Wrap: func(http.RoundTripper) http.RoundTripper { return server }})
		ctx, leave := context.WithCancel(t.Context())
		rec, done := httptest.NewRecorder(), make(chan any, 1)
		go func() {
			defer func() { done <- recover() }()
			p.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(asksOne)))
		}()
		<-server.asked
		leave()
		if end := <-done; end != http.ErrAbortHandler || rec.Body.Len() > 0 {
			t.Errorf("%v, told %s", end, rec.Body)
		}
		p.Close()
	})
}

func TestWhoIsCutOffAtAProcessIsToldWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{verbatim: func(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
			<-ctx.Done()
			return nil, &upstream.Failure{Cause: upstream.Canceled, Detail: "cancelled", Err: ctx.Err()}
		}}
		p := NewProcess(ProcessOptions{Server: s})
		rec := httptest.NewRecorder()
		go p.ServeHTTP(rec, request("x/y", "", ""))
		synctest.Wait()
		p.Close()
		if want := `"message":"` + gaveUp + `","data":{"bridge":{"reason":"shutdown"}}`; rec.Code != http.StatusBadGateway || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("it is told %d %s", rec.Code, rec.Body)
		}
	})
}
