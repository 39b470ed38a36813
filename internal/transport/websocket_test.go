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

	"github.com/mcpbridge/bridge/internal/budget"
)

// A message is charged for the memory that it has, not for all that it was copied from while
// it grew.
func TestAMessageIsChargedOnce(t *testing.T) {
	memory := budget.New(13 << 20)
	read := make(chan int, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account, err := memory.Open("")
		if err != nil {
			t.Error(err)
			return
		}
		defer account.Close()
		ws, err := Upgrade(w, r, WebSocketOptions{MaxMessage: 4 << 20, WriteTimeout: time.Minute, Silence: time.Minute, Account: account})
		if err != nil {
			t.Error(err)
			return
		}
		msg, err := ws.Read()
		if err != nil {
			t.Error(err)
		}
		read <- len(msg)
		_ = ws.Close(CloseNormal, "")
	}))
	defer srv.Close()
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte("x"), 3<<20)); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != 3<<20 {
		t.Errorf("read %d bytes of a message of 3 MiB, in memory for three of it", got)
	}
}

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

// TestThePeerOfAFrameOfNoLengthLearnsWhy: the most significant bit must be 0. What is only too large is 1009.
func TestThePeerOfAFrameOfNoLengthLearnsWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		frames string
		code   int
		err    error
	}{
		"no length":          {"\x81\xff\x80\x00\x00\x00\x00\x00\x00\x00mask", websocket.CloseProtocolError, errLength},
		"all ones":           {"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xffmask", websocket.CloseProtocolError, errLength},
		"in a continuation":  {"\x01\x81\x00\x00\x00\x00x\x80\xff\x80\x00\x00\x00\x00\x00\x00\x00mask", websocket.CloseProtocolError, errLength},
		"too large":          {"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask", websocket.CloseMessageTooBig, ErrTooLarge},
		"a little too large": {"\x81\xfe\x04\x01mask", websocket.CloseMessageTooBig, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
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
			if _, err := conn.NetConn().Write([]byte(tc.frames)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, tc.code) {
				t.Errorf("the peer got %v", err)
			}
			_ = conn.Close()
			if err := <-read; !errors.Is(err, tc.err) {
				t.Errorf("Read returned %v", err)
			}
		})
	}
}

// TestThePeerOfWhatIsNoTextLearnsWhy: what follows, such as the rest of a batch of frames, does not reset the connection.
func TestThePeerOfWhatIsNoTextLearnsWhy(t *testing.T) {
	rest := strings.Repeat("\x81\x81\x00\x00\x00\x00x", 1000)
	for name, tc := range map[string]struct {
		frames string
		code   int // 0: it is a message
	}{
		"no UTF-8":                       {"\x81\x83\x00\x00\x00\x00\"\xff\"", websocket.CloseInvalidFramePayloadData},
		"half a surrogate":               {"\x81\x85\x00\x00\x00\x00\"\xed\xa0\x80\"", websocket.CloseInvalidFramePayloadData},
		"in a continuation":              {"\x01\x81\x00\x00\x00\x00x\x80\x81\x00\x00\x00\x00\xff", websocket.CloseInvalidFramePayloadData},
		"half a character at the end":    {"\x01\x81\x00\x00\x00\x00x\x80\x81\x00\x00\x00\x00\xc3", websocket.CloseInvalidFramePayloadData},
		"a binary frame":                 {"\x82\x81\x00\x00\x00\x00x", websocket.CloseUnsupportedData},
		"a character in two frames":      {"\x01\x81\x00\x00\x00\x00\xc3\x80\x81\x00\x00\x00\x00\xa9", 0},
		"a reason that is not even text": {"\x88\x83\x00\x00\x00\x00\x03\xe8\xff", websocket.CloseProtocolError}, // of gorilla
	} {
		t.Run(name, func(t *testing.T) {
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
			if tc.code != 0 && tc.code != websocket.CloseProtocolError {
				tc.frames += rest
			}
			if _, err := conn.NetConn().Write([]byte(tc.frames)); err != nil {
				t.Fatal(err)
			}
			want := tc.code
			if want == 0 {
				want = websocket.CloseNormalClosure
			}
			if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, want) {
				t.Errorf("the peer got %v", err)
			}
			_ = conn.Close()
			if err := <-read; (err == nil) != (tc.code == 0) {
				t.Errorf("Read returned %v", err)
			}
		})
	}
}
