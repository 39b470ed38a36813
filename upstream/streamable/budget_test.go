package streamable

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// frugal is an upstream that allocates nothing per request: every response is
// tail, with the request's id put in for each @.
func frugal(t testing.TB, media, text string) (url string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serveFrugally(c, media, text) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); all.Wait() })
	return "http://" + ln.Addr().String()
}

func serveFrugally(c net.Conn, media, text string) {
	defer c.Close()
	in, body, out := make([]byte, 64<<10), []byte(nil), []byte(nil)
	for {
		n, err := c.Read(in)
		if err != nil {
			return
		}
		_, rest, _ := bytes.Cut(in[:n], []byte(`"id":`))
		id := rest[:bytes.IndexByte(rest, ',')]
		body = body[:0]
		for i := range len(text) {
			if text[i] == '@' {
				body = append(body, id...)
			} else {
				body = append(body, text[i])
			}
		}
		out = append(append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: "...), media...)
		out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(len(body)), 10)
		out = append(append(out, "\r\n\r\n"...), body...)
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// light is a context like those of the bridge's calls.
type light struct{ context.Context }

var kept = func() bool { return true }

func (light) AfterFunc(func()) (stop func() bool) { return kept }

const (
	smallAnswer = `{"jsonrpc":"2.0","id":@,"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}}`
	oneProgress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"
)

func bigAnswer() string {
	return strings.Replace(smallAnswer, "ok", strings.Repeat(`line\n`, 13<<10), 1)
}

// TestAllocationBudget: of a call's allocations two are the client's own, its id
// and its Answer; with one more for the stop function of a real context.
func TestAllocationBudget(t *testing.T) {
	testmode.NeedsLean(t)
	for name, tt := range map[string]struct {
		media, text string
		header      map[string][]string
		max         float64
	}{
		"small":         {mediaJSON, smallAnswer, nil, 2},
		"with a header": {mediaJSON, smallAnswer, map[string][]string{"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}, 2},
		"64 KiB":        {mediaJSON, bigAnswer(), nil, 2},
		"ten progress":  {mediaSSE, strings.Repeat(oneProgress, 10) + "data: " + smallAnswer + "\n\n", nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, frugal(t, tt.media, tt.text), Options{})
			cl := call(mcp.MethodToolsCall, `"name":"echo","arguments":{"text":"hello"}`)
			cl.Header = tt.header
			cl.Idle = func() {}
			ctx, notify := context.Context(light{context.Background()}), func(jsonrpc.Message) {}
			got := testing.AllocsPerRun(200, func() {
				ans, err := c.Do(ctx, cl, notify)
				if err != nil || ans.Error != nil {
					t.Fatal(err, ans)
				}
				ans.Release()
			})
			if got > tt.max && !raceEnabled {
				t.Errorf("%v allocations, budget %v", got, tt.max)
			}
		})
	}
}

// TestAllocationBudgetOfHeaders: what is in the params by itself costs nothing. A
// mirrored argument is decoded, made a header's value, and that a string. Whose tools count is found out only for
// names that annotated tools have.
func TestAllocationBudgetOfHeaders(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	c := newClient(t, "http://127.0.0.1:1", Options{})
	c.tools.Learn("", []byte(`{"tools":[{"name":"annotated","inputSchema":{"type":"object","properties":{`+
		`"region":{"type":"string","x-mcp-header":"Region"},"size":{"type":"integer","x-mcp-header":"Size"}}}}]}`))
	for name, tt := range map[string]struct {
		max     float64
		params  string
		headers int
		header  map[string][]string
	}{
		"tool without annotations": {0, `"name":"echo","arguments":{"text":"hello"}`, 0, nil},
		"for a client of its own":  {0, `"name":"echo","arguments":{"text":"hello"}`, 0, map[string][]string{"X-Api-Key": {"K1"}}},
		"no argument to mirror":    {0, `"name":"annotated","arguments":{}`, 0, nil},
		"one argument":             {3, `"name":"annotated","arguments":{"region":"eu"}`, 1, nil},
		"two arguments":            {4, `"name":"annotated","arguments":{"region":"eu","size":3}`, 2, nil},
		"argument in Base64":       {4, `"name":"annotated","arguments":{"region":"köln"}`, 1, nil},
	} {
		cl := call(mcp.MethodToolsCall, tt.params)
		cl.Header = tt.header
		got := testing.AllocsPerRun(200, func() {
			req := prepare(cl)
			if e := c.mirror(req); e != nil || len(req.custom) != tt.headers {
				t.Fatal(name, e, req.custom)
			}
			req.release()
		})
		if got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
	}
}
