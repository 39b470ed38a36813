package compat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/mcp"
)

// A client that cancels a call may use its id again at once, whether the call has
// reached the server by then or not (D-T13, B-1).
func TestRequestThatTakesTheIDOfACancelledCallIsAnswered(t *testing.T) {
	w := newWorld(t, mcp.V20250618, nil)
	arrived := make(chan struct{}, 1000)
	w.server.on("tools/call", func(x *incoming) {
		arrived <- struct{}{}
		x.gone()
	})
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}, HandshakeTimeout: patience}
	ws, _, err := dialer.Dial("ws"+strings.TrimPrefix(w.url, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	send := func(text string) {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		_, text, err := ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, text := range openings(w.version) {
		send(text)
	}
	read()
	for n := range 400 {
		id := n % 3
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{}}}`, id))
		if n%2 == 0 {
			<-arrived
		}
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		if got, want := read(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id); got != want {
			t.Errorf("n=%d: %s", n, got)
		}
	}
}
