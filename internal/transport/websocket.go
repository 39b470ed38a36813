package transport

import (
	"errors"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Subprotocol is the WebSocket subprotocol that MCP clients ask for (E-33).
const Subprotocol = "mcp"

// Close codes of WebSocket that callers choose between.
const (
	CloseNormal    = websocket.CloseNormalClosure
	CloseGoingAway = websocket.CloseGoingAway
	ClosePolicy    = websocket.ClosePolicyViolation
)

// WebSocketOptions bounds a WebSocket.
type WebSocketOptions struct {
	MaxMessage   int64         // bytes of a message from the peer
	WriteTimeout time.Duration // for one message to the peer
	// Account is charged for a message while it comes in; nil: it is without bounds.
	Account *budget.Account
	// Silence is how long the peer may say nothing at all; it must answer
	// pings meanwhile.
	Silence time.Duration
}

// WebSocket carries one message per text frame. One goroutine may read and one
// may write at a time; Ping and Close may be called at any time.
type WebSocket struct {
	conn *websocket.Conn
	opt  WebSocketOptions
}

// IsWebSocket reports whether a request asks for an upgrade to WebSocket.
func IsWebSocket(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Upgrade turns an HTTP request into a WebSocket. The caller has checked the
// Origin. When it fails the response is already written.
func Upgrade(w http.ResponseWriter, r *http.Request, opt WebSocketOptions) (*WebSocket, error) {
	up := websocket.Upgrader{
		Subprotocols:     []string{Subprotocol},
		CheckOrigin:      func(*http.Request) bool { return true },
		HandshakeTimeout: opt.WriteTimeout,
		ReadBufferSize:   2048, WriteBufferSize: 2048,
	}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	ws := &WebSocket{conn: conn, opt: opt}
	conn.SetReadLimit(opt.MaxMessage)
	conn.SetPongHandler(func(string) error { return ws.heard() })
	return ws, ws.heard()
}

// heard gives the peer another stretch of silence.
func (ws *WebSocket) heard() error {
	return ws.conn.SetReadDeadline(time.Now().Add(ws.opt.Silence))
}

// Read returns the next message. For one that was refused for want of memory it returns
// the beginning, with the error of package budget, and goes on with the next one. It returns io.EOF when the peer closed the
// connection properly, and ErrTooLarge for a message above the limit, of which that was told with code 1009. Binary
// frames are refused with code 1003, lengths of 2^63 and more with 1002, text that is no UTF-8 with 1007. After an error the WebSocket is only good
// for Close.
func (ws *WebSocket) Read() ([]byte, error) {
	kind, msg, err := ws.message()
	switch {
	case budget.Short(err):
		return msg, err
	case errors.Is(err, websocket.ErrReadLimit):
		err = ErrTooLarge                                                         // gorilla has said 1009 by then
		if ws.sayClosed(websocket.CloseProtocolError, errLength.Error()) == nil { // but of a length that is none
			err = errLength
		}
		ws.drain()
		return nil, err
	case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived):
		return nil, io.EOF
	case err != nil:
		return nil, err
	case kind != websocket.TextMessage:
		return nil, ws.refuse(websocket.CloseUnsupportedData, "only text frames carry messages")
	case !utf8.Valid(msg):
		return nil, ws.refuse(websocket.CloseInvalidFramePayloadData, "a text frame is UTF-8")
	}
	return msg, ws.heard()
}

// refuse tells the peer why nothing more is read.
func (ws *WebSocket) refuse(code int, why string) error {
	_ = ws.sayClosed(code, why)
	ws.drain()
	return errors.New(why)
}

// errLength is about a frame whose length has the bit that must not be set, or with which that of its message has.
var errLength = errors.New("a frame has no such length")

// message reads a message, which is charged until it is whole.
func (ws *WebSocket) message() (kind int, msg []byte, err error) {
	kind, r, err := ws.conn.NextReader()
	if err != nil {
		return 0, nil, err
	}
	hold := budget.On(ws.opt.Account)
	defer hold.Release()
	msg = make([]byte, 0, 512)
	for {
		n, err := r.Read(msg[len(msg):cap(msg)])
		msg = msg[:len(msg)+n]
		switch {
		case errors.Is(err, io.EOF):
			return kind, msg, nil
		case err != nil:
			return kind, msg, err
		case len(msg) < cap(msg):
			continue
		}
		if short := hold.Grow(2 * cap(msg)); short != nil {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return kind, msg, err
			}
			return kind, msg, errors.Join(short, ws.heard())
		}
		msg = append(make([]byte, 0, 2*cap(msg)), msg...)
		_ = hold.Set(cap(msg)) // what it was copied from can go
	}
}

// Bounds of what is read, and for how long, from a peer that is to be cut off.
const (
	drainBytes = 64 << 20
	drainTime  = time.Second
)

// drain takes in what the peer still sends until it has read the close frame.
// Closing with bytes unread would reset the connection, and the frame would be
// lost with it.
func (ws *WebSocket) drain() {
	conn := ws.conn.NetConn()
	_ = conn.SetReadDeadline(time.Now().Add(drainTime))
	_, _ = io.CopyN(io.Discard, conn, drainBytes)
}

// Write sends one message.
func (ws *WebSocket) Write(msg []byte) error {
	if err := ws.conn.SetWriteDeadline(time.Now().Add(ws.opt.WriteTimeout)); err != nil {
		return err
	}
	return ws.conn.WriteMessage(websocket.TextMessage, msg)
}

// Ping asks the peer for a sign of life, waiting at most this long.
func (ws *WebSocket) Ping(timeout time.Duration) error {
	return ws.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(timeout))
}

// Close says goodbye with a code and a short reason, and closes the connection.
func (ws *WebSocket) Close(code int, reason string) error {
	_ = ws.sayClosed(code, reason)
	return ws.conn.Close()
}

// sayClosed says goodbye, if nobody has: otherwise it returns an error.
func (ws *WebSocket) sayClosed(code int, reason string) error {
	return ws.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
}
