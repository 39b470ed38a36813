package transport

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// A peer that is told why can say so to its user. A connection that is closed
// with bytes unread is reset, and the reason is lost with what was on its way.
func TestThePeerOfAMessageAboveTheLimitLearnsWhy(t *testing.T) {
	read := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := Upgrade(w, r, WebSocketOptions{MaxMessage: 1 << 10, WriteTimeout: time.Minute, Silence: time.Minute})
		if err != nil {
			t.Error(err)
			return
		}
		_, err = ws.Read()
		read <- err
		_ = ws.Close(CloseNormal, "")
	}))
	defer srv.Close()
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := conn.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte("x"), 8<<20)); err != nil {
		t.Errorf("the connection was reset while the peer was writing: %v", err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("the peer got %v", err)
	}
	_ = conn.Close()
	if err := <-read; !errors.Is(err, ErrTooLarge) {
		t.Errorf("Read returned %v", err)
	}
}
