package streamable

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// C-18 and the ways in which a listen ends.
func TestListen(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream string
		want   string // methods
		end    func(err error) bool
	}{
		{"graceful", note("acknowledged", "ID") + note("tools/list_changed", "ID") + "data: " + okBody + "\n\n", "acknowledged tools/list_changed", func(err error) bool { return err == nil }},
		{"I-2 integer id as a string", note("acknowledged", `"ID"`) + "data: " + okBody + "\n\n", "acknowledged", func(err error) bool { return err == nil }},
		{"another subscription's", note("acknowledged", "ID") + note("tools/list_changed", "999999") + "data: " + okBody + "\n\n", "acknowledged", func(err error) bool { return err == nil }},
		{"the stream just stops", note("acknowledged", "ID"), "acknowledged", func(err error) bool {
			f, ok := err.(*upstream.Failure)
			return ok && f.Cause == upstream.Lost
		}},
		{"refused", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n\n", "", func(err error) bool {
			e, ok := err.(*jsonrpc.Error)
			return ok && e.Code == -32601
		}},
	} {
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
				raw(200, "text/event-stream", tc.stream)(w, g.msg.ID)
			})
			var seen []string
			err := newClient(t, p.URL, opt).Listen(t.Context(), call(mcp.MethodListen, `"notifications":{}`), func(m jsonrpc.Message) {
				seen = append(seen, strings.TrimPrefix(strings.TrimPrefix(m.Method, "notifications/"), "subscriptions/"))
			})
			if !tc.end(err) || strings.Join(seen, " ") != tc.want {
				t.Fatalf("%s: %v, %v", tc.name, err, seen)
			}
		})
	}
}

func note(what, id string) string {
	if what == "acknowledged" {
		what = "subscriptions/acknowledged"
	}
	return `data: {"jsonrpc":"2.0","method":"notifications/` + what + `","params":{"_meta":{"` + mcp.MetaSubscriptionID + `":` + id + "}}}\n\n"
}

// E-44: only the context ends a quiet subscription.
func TestE44AQuietListenStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go func() {
			if r, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				_ = r.Body.Close()
				_, _ = fmt.Fprint(server, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
			}
		}()
		c, err := New(Options{URL: "http://x/", Dial: func(context.Context, string, string) (net.Conn, error) { return client, nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		begun := time.Now()
		err = c.Listen(ctx, call(mcp.MethodListen, ""), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Timeout || time.Since(begun) != 24*time.Hour {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
	})
}
