package streamable

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// benchServer answers quickly; mode is json, large or sse.
func benchServer(b *testing.B, mode string) string {
	result := `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`
	if mode == "large" {
		result = `{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", 64<<10) + `"}]}`
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		msg, _ := jsonrpc.Parse(body)
		out := jsonrpc.AppendResult(nil, msg.ID, []byte(result))
		if mode != "sse" {
			w.Header()["Content-Type"] = []string{"application/json"}
			_, _ = w.Write(out)
			return
		}
		w.Header()["Content-Type"] = []string{"text/event-stream"}
		for range 10 {
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: "+string(out)+"\n\n")
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// BenchmarkDo compares the transports in one run: the same server, the same
// calls. Allocations include the server's.
func BenchmarkDo(b *testing.B) {
	for _, mode := range []string{"json", "large", "sse"} {
		url := benchServer(b, mode)
		for _, std := range []bool{false, true} {
			name := map[bool]string{false: "lean", true: "net-http"}[std]
			b.Run(mode+"/"+name, func(b *testing.B) {
				c := newClient(b, url, Options{StandardTransport: std})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				cl := call(mcp.MethodToolsCall, `"name":"echo","arguments":{"text":"hello"}`)
				b.ReportAllocs()
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						ans, err := c.Do(ctx, cl, func(jsonrpc.Message) {})
						if err != nil {
							b.Error(err)
							return
						}
						ans.Release()
					}
				})
			})
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	c := newClient(b, "http://127.0.0.1:1", Options{})
	cl := call(mcp.MethodToolsCall, `"name":"echo","arguments":{"text":"hello","region":"eu"}`)
	c.tools.Learn("", []byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`))
	b.ReportAllocs()
	for b.Loop() {
		req := prepare(cl)
		if e := c.mirror(req); e != nil || len(req.custom) != 1 {
			b.Fatal(e, req.custom)
		}
		req.release()
	}
}
