package streamable

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

func TestMain(m *testing.M) {
	firstEvent, parting = 200*time.Millisecond, 200*time.Millisecond
	goleak.VerifyTestMain(m)
}

// got is what a scripted server saw of one request.
type got struct {
	header http.Header
	body   []byte
	msg    jsonrpc.Message
	path   string
	method string
}

// script answers the n-th request, counted from 0.
type script func(n int, w http.ResponseWriter, g *got, r *http.Request)

// scripted is an upstream with a script that records what it saw.
type scripted struct {
	*httptest.Server
	seen chan *got
}

func newScripted(t testing.TB, s script) *scripted {
	t.Helper()
	p := &scripted{seen: make(chan *got, 100)}
	n := make(chan int, 1)
	n <- 0
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := &got{header: r.Header.Clone(), path: r.URL.RequestURI(), method: r.Method}
		g.body, _ = io.ReadAll(r.Body)
		g.msg, _ = jsonrpc.Parse(g.body)
		i := <-n
		n <- i + 1
		p.seen <- g
		s(i, w, g, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *scripted) next(t testing.TB) *got {
	t.Helper()
	select {
	case g := <-p.seen:
		return g
	default:
		t.Fatal("the upstream saw no further request")
		return nil
	}
}

func (p *scripted) none(t testing.TB) {
	t.Helper()
	if n := len(p.seen); n > 0 {
		t.Fatalf("the upstream saw %d more requests", n)
	}
}

// eachTransport runs a test over net/http and over the lean transport.
func eachTransport(t *testing.T, f func(t *testing.T, opt Options)) {
	for _, std := range []bool{false, true} {
		t.Run(map[bool]string{false: "lean", true: "net/http"}[std], func(t *testing.T) {
			f(t, Options{StandardTransport: std})
		})
	}
}

func newClient(t testing.TB, url string, opt Options) *Client {
	t.Helper()
	opt.URL = url
	opt.StandardTransport = opt.StandardTransport || testmode.StandardHTTP()
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const meta = `"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28","` + mcp.MetaClientCapabilities + `":{}}`

func call(method, params string) *upstream.Call {
	if params != "" {
		params = "," + params
	}
	return &upstream.Call{Method: method, Params: []byte("{" + meta + params + "}")}
}

func answer(w http.ResponseWriter, id jsonrpc.ID, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func refuseWith(w http.ResponseWriter, id jsonrpc.ID, status, code int, data string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no","data":%s}}`, id, code, data)
}

func mustDo(t testing.TB, c upstream.Caller, call *upstream.Call) *upstream.Answer {
	t.Helper()
	ans, err := c.Do(context.Background(), call, nil)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	return ans
}
