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

func TestReleaseIsIdempotent(t *testing.T) {
	url, _ := newEcho(t, func() bool { return true })
	c := newClient(t, url, Options{})
	a := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{"a":1}`))
	if a.Release(); a.Result != nil {
		t.Error("the memory was not given back")
	}
	b := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{"b":1}`))
	a.Release()
	if x := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{"x":1}`)); string(b.Result) != `{"b":1}` {
		t.Errorf("%s, %s", b.Result, x.Result)
	}
	(*upstream.Answer)(nil).Release()
	(&upstream.Answer{Error: &jsonrpc.Error{}}).Release()
}

func TestTheResultTypeIsThatOfTheResult(t *testing.T) {
	for _, stream := range []bool{false, true} {
		url, _ := newEcho(t, func() bool { return stream })
		c := newClient(t, url, Options{})
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
	eachTransport(t, func(t *testing.T, opt Options) {
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
