package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

func TestBuffersHaveTheRoomThatWasAskedFor(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 4095, 4096, 4097, 8192, 8193, 65 << 10, 256 << 10, 256<<10 + 1, 1 << 20} {
		if b := getBuffer(n); cap(*b) < n || len(*b) != 0 {
			t.Errorf("%d bytes of %d", cap(*b), n)
		}
	}
	for size := 0; size < 300<<10; size += 1021 { // what is put back must do for whom it is given to
		b := make([]byte, 3, size+3)
		putBuffer(&b)
		if got := getBuffer(size); cap(*got) < size || len(*got) != 0 {
			t.Fatalf("%d bytes of %d", cap(*got), size)
		}
	}
}

func TestReleaseIsIdempotent(t *testing.T) {
	url, _ := newEcho(t, func() bool { return true })
	c := newClient(t, url, HTTPOptions{})
	a := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{"a":1}`))
	if a.Release(); a.Result != nil || a.body != nil {
		t.Error("the memory was not given back")
	}
	b := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{"b":1}`))
	a.Release()
	if x := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{"x":1}`)); string(b.Result) != `{"b":1}` {
		t.Errorf("%s, %s", b.Result, x.Result)
	}
	(*Answer)(nil).Release()
	(&Answer{Error: &jsonrpc.Error{}}).Release()
}

func TestTheResultTypeIsThatOfTheResult(t *testing.T) {
	for _, stream := range []bool{false, true} {
		url, _ := newEcho(t, func() bool { return stream })
		c := newClient(t, url, HTTPOptions{})
		for typ, result := range map[string]string{
			`"complete"`: `{"a":{"resultType":"no"},"resultType":"complete"}`, `"odd"`: `{"resultType":"odd"}`, `7`: `{"resultType":7}`, ``: `{}`,
		} {
			a := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":`+result))
			if got := a.ResultType(); got != typ {
				t.Errorf("%s: %s", result, got)
			}
			a.Replace([]byte(`{"resultType":"task"}`)) // and with it its type
			if got := a.ResultType(); got != `"task"` {
				t.Errorf("replaced: %s", got)
			}
			if a.Release(); a.ResultType() != "" {
				t.Error("released, but of some type")
			}
		}
	}
}

// TestIdleIsCalledBeforeEveryWait: what a server sends at once is passed on at
// once, and nothing that was passed on waits for what comes later.
func TestIdleIsCalledBeforeEveryWait(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		step := make(chan struct{}, 2)
		srv := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
			flush := func() { _ = http.NewResponseController(w).Flush() }
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": nothing yet\n\n")
			flush()
			_, _ = io.WriteString(w, strings.Repeat(oneProgress, 3)+": ping\n\n")
			flush()
			<-step
			_, _ = io.WriteString(w, oneProgress+oneProgress[:20])
			flush()
			<-step
			_, _ = io.WriteString(w, oneProgress[20:])
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", g.msg.ID)
		})
		var seen strings.Builder
		cl := call(mcp.MethodToolsCall, `"name":"t"`)
		cl.Idle = func() { seen.WriteByte('|'); step <- struct{}{} }
		c := newClient(t, srv.URL, opt)
		if _, err := c.Do(t.Context(), cl, func(jsonrpc.Message) { seen.WriteByte('.') }); err != nil {
			t.Fatal(err)
		}
		if seen.String() != "...|.|." {
			t.Errorf("%s", &seen)
		}
	})
}
