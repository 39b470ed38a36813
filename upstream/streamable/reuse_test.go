package streamable

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// Only a response that names the request leaves its connection for the next one:
// after any other, the response to the request may still come.
func TestOnlyAResponseToOurRequestKeepsTheConnection(t *testing.T) {
	other := `{"jsonrpc":"2.0","id":"other","result":{}}`
	for _, tc := range []struct {
		name    string
		respond func(http.ResponseWriter, jsonrpc.ID)
		kept    bool
	}{
		{"result", raw(200, mediaJSON, okBody), true},
		{"error", rpcError(400, -32602), true},
		{"stream", raw(200, mediaSSE, "data: "+okBody+"\n\n"), true},
		{"busy, with an error", rpcError(503, -32000), true},
		{"result of another", raw(200, mediaJSON, other), false},
		{"error of another", rpcErrorOther(400), false},
		{"error without an id", raw(400, mediaJSON, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`), false},
		{"error without an id and 200", raw(200, mediaJSON, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}`), false},
		{"error without an id on a stream", raw(200, mediaSSE, "data: {\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"m\"}}\n\n"), false},
		{"stream with a result of another", raw(200, mediaSSE, "data: "+other+"\n\ndata: "+okBody+"\n\n"), false},
		{"no JSON", raw(200, mediaJSON, "oops"), false},
		{"HTML", raw(200, "text/html", "<html>"), false},
		{"request", raw(400, mediaJSON, `{"jsonrpc":"2.0","id":ID,"method":"ping"}`), false},
		{"401", raw(401, "", ""), false},
		{"204", raw(204, "", ""), false},
		{"500", raw(500, "text/plain", "oops"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, opt Options) {
				var conns atomic.Int32
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					msg, _ := jsonrpc.Parse(body)
					tc.respond(w, msg.ID)
				}))
				srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
					if s == http.StateNew {
						conns.Add(1)
					}
				}
				srv.Start()
				defer srv.Close()
				c := newClient(t, srv.URL, opt)
				for range 3 {
					_, _ = c.Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
				}
				want := int32(3)
				if tc.kept {
					want = 1
				}
				if got := conns.Load(); got != want {
					t.Errorf("%d connections", got)
				}
			})
		})
	}
}

// A response that nobody asked for fails one call at most, whenever it comes.
func TestASurplusResponseHarmsOneCall(t *testing.T) {
	surplus := "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
	secret := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"of another user"}}`
	eachTransport(t, func(t *testing.T, opt Options) {
		next := make(chan struct{})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() {
			for first := true; ; first = false {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				serving.Go(func() { serveStray(nc, first, next, fmt.Sprintf(surplus, len(secret), secret)) })
			}
		})
		c := newClient(t, "http://"+ln.Addr().String(), opt)
		mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t"`))
		next <- struct{}{} // now the surplus response is written
		<-next
		wrong := 0
		for range 20 {
			ans, err := c.Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
			if err != nil || ans.Error != nil {
				wrong++
			}
		}
		if wrong > 1 {
			t.Errorf("%d calls were harmed", wrong)
		}
		_ = c.Close()
		_ = ln.Close()
		serving.Wait()
	})
}

// serveStray answers requests, and on the first connection writes surplus behind
// the first answer.
func serveStray(nc net.Conn, first bool, next chan struct{}, surplus string) {
	defer nc.Close()
	br := bufio.NewReader(nc)
	for n := 0; ; n++ {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		msg, _ := jsonrpc.Parse(body)
		text := strings.ReplaceAll(okBody, "ID", string(msg.ID))
		fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		if first && n == 0 {
			<-next
			_, _ = io.WriteString(nc, surplus)
			next <- struct{}{}
		}
	}
}

// D-15: no carrier sends a call again by itself that the server may have
// executed, whatever the client's headers promise.
func TestD15NoCarrierRepeatsACall(t *testing.T) {
	for name, partly := range map[string]string{
		"before the response": "",
		"in the head":         "HTTP/1.1 200 OK\r\nContent-",
		"in the body":         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"in a stream":         "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n: hi\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, opt Options) {
				testNoRepeat(t, opt, partly)
			})
		})
	}
}

func testNoRepeat(t *testing.T, opt Options, partly string) {
	var executed atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		msg, _ := jsonrpc.Parse(body)
		if r.Header.Get("Idempotency-Key") != "k" {
			t.Error("the client's header does not reach the server")
		}
		if executed.Add(1); executed.Load() == 1 {
			answer(w, msg.ID, "{}")
			return
		}
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(nc, partly)
		_ = nc.Close()
	}))
	defer srv.Close()
	c := newClient(t, srv.URL, opt)
	once := call(mcp.MethodToolsCall, `"name":"t"`)
	once.Header = http.Header{"Idempotency-Key": {"k"}}
	mustDo(t, c, once)
	_, err := c.Do(t.Context(), once, nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Lost || !f.Sent {
		t.Errorf("%v", err)
	}
	if n := executed.Load(); n != 2 {
		t.Errorf("two calls were executed %d times", n)
	}
}
