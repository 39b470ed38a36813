package compat

import (
	"fmt"
	"testing"

	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mcp"
)

// channel is a connection that is a session: what comes from the bridge on it,
// and how to say something.
type channel struct {
	read func() string
	send func(text string)
}

// converse lets a client on a channel initialize, call a tool and answer the
// tool's question.
func (w *world) converse(ch channel) cell {
	call, question := w.carried()
	for _, text := range openings(w.version) {
		ch.send(text)
	}
	opened := parse(w.T, ch.read())
	expect(w.T, "E-29: protocolVersion", member(opened.Result, "protocolVersion"), quote(string(w.version)))
	ch.send(call)
	asked := parse(w.T, ch.read())
	if asked.Method != question {
		w.Fatalf("asked %s", asked.Text)
	}
	ch.send(`{"jsonrpc":"2.0","id":` + asked.ID + `,"result":{"roots":[{"uri":"file:///r"}]}}`)
	done := parse(w.T, ch.read())
	expect(w.T, "the answer", done.Text, `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done"}]}}`)
	expect(w.T, "the input response", member(w.server.last("tools/call").Params, "inputResponses"), `{"r":{"roots":[{"uri":"file:///r"}]}}`)
	return asItIs()
}

func overStdio(w *world) cell {
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- legacy.ServeStdio(context.Background(), in, out, legacy.Options{}, w.mount.Bridge)
		out.Close()
	}()
	lines := bufio.NewReader(fromBridge)
	c := w.converse(channel{
		read: func() string {
			line, err := lines.ReadString('\n')
			if err != nil {
				w.Fatal(err)
			}
			return line
		},
		send: func(text string) { _, _ = io.WriteString(toBridge, text+"\n") },
	})
	toBridge.Close()
	if err := <-served; err != nil {
		w.Errorf("at the end of its input: %v", err)
	}
	return c
}

func overWebSocket(w *world) cell {
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}, HandshakeTimeout: patience}
	ws, res, err := dialer.Dial("ws"+strings.TrimPrefix(w.url, "http"), nil)
	if err != nil {
		w.Fatal(err)
	}
	defer ws.Close()
	if res.Header.Get("Sec-Websocket-Protocol") != "mcp" {
		w.Errorf("E-33: subprotocol %q", res.Header.Get("Sec-Websocket-Protocol"))
	}
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	return w.converse(channel{
		read: func() string {
			kind, text, err := ws.ReadMessage()
			if err != nil || kind != websocket.TextMessage {
				w.Fatalf("E-33: frame of kind %d: %v", kind, err)
			}
			return string(text)
		},
		send: func(text string) {
			if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				w.Fatal(err)
			}
		},
	})
}

func overHTTPSSE(w *world) cell {
	mux := http.NewServeMux()
	mux.Handle("/sse", w.mount.SSE("/messages"))
	mux.Handle("/messages", w.mount.Messages())
	front := httptest.NewServer(mux)
	defer front.Close()
	defer front.CloseClientConnections()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/sse", nil)
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := w.client.http.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	stream := &reply{t: w.T, body: bufio.NewReader(res.Body)}
	id, endpoint, err := stream.event() // E-25: the first event names the endpoint
	if err != nil || !strings.HasPrefix(endpoint, "/messages?") || id != "" || res.Header.Get("Mcp-Session-Id") != "" {
		w.Fatalf("E-25, E-27: endpoint %q, event id %q: %v", endpoint, id, err)
	}
	return w.converse(channel{
		read: func() string {
			id, data, err := stream.event()
			if err != nil || id != "" {
				w.Fatalf("E-27: event id %q: %v", id, err)
			}
			return data
		},
		send: func(text string) {
			res, err := w.client.http.Post(front.URL+endpoint, "application/json", strings.NewReader(text))
			if err != nil {
				w.Fatal(err)
			}
			defer res.Body.Close()
			if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted || len(body) != 0 {
				w.Errorf("E-26: HTTP %d %s", res.StatusCode, body)
			}
		},
	})
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// E-35: whatever many calls say at once, no message is torn.
func TestMessagesOnAChannelStayWhole_E35(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("tools/call", func(x *incoming) {
		for n := range 3 {
			x.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":%q}`, x.token(), n+1, strings.Repeat("m", 3000)))
		}
		x.result(`{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("r", 5000) + `"}]}`)
	})
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- legacy.ServeStdio(context.Background(), in, out, legacy.Options{}, w.mount.Bridge)
		out.Close()
	}()
	const calls = 40
	go func() {
		for _, text := range openings(w.version) {
			_, _ = io.WriteString(toBridge, text+"\n")
		}
		for n := range calls {
			_, _ = fmt.Fprintf(toBridge, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":%d}}}`+"\n", n, n)
		}
	}()
	lines := bufio.NewReader(fromBridge)
	answered, progressed := 0, 0
	for answered < calls+1 { // and initialize
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		switch m := parse(t, line); {
		case m.isResponse():
			answered++
		case m.Method == "notifications/progress":
			progressed++
		}
	}
	if progressed != 3*calls {
		t.Errorf("E-35: %d notifications, want %d", progressed, 3*calls)
	}
	toBridge.Close()
	<-served
}
