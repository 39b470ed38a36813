package client

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/bench/stub"
	"github.com/mcpbridge/bridge/mcp"
)

// Session is one legacy session of 2025-11-25. Its calls run one after the
// other on one connection; answers to questions take a second one, because
// the first is busy with the call's stream. It is not safe for concurrent use.
type Session struct {
	ID     string
	main   *Conn
	side   *Conn
	post   string // request head up to the length
	del    string
	get    string
	nextID int
	msg    []byte
	reply  []byte
	host   string
}

// NewSession makes a session that is not opened yet. Connections may be shared
// by sessions that take turns; side may be nil when no question is expected.
func NewSession(host string, main, side *Conn) *Session {
	return &Session{main: main, side: side, host: strings.TrimPrefix(host, TLS)}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{"elicitation":{},"roots":{"listChanged":true}},"clientInfo":{"name":"bench","version":"1.0.0"}}}`

const common = "User-Agent: mcp-bench/1\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"

// Open performs the handshake: initialize, then notifications/initialized.
func (s *Session) Open() error {
	s.main.SessionID = ""
	head := "POST " + stub.Path + " HTTP/1.1\r\nHost: " + s.host + "\r\n" + common
	body, err := s.exchange(s.main, head+"Content-Length: ", []byte(initialize), 200)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if s.main.SSE {
		if body, err = onlyEvent(body); err != nil {
			return fmt.Errorf("initialize: %w", err)
		}
	}
	result := scan.Get(body, "result")
	if !scan.Is(scan.Get(result, "protocolVersion"), string(mcp.V20251125)) || scan.Path(result, "capabilities", "tools") == nil || scan.Path(result, "serverInfo", "name") == nil {
		return unexpected("initialize result", body)
	}
	if s.main.SessionID == "" {
		return errors.New("initialize: no session id")
	}
	s.adopt(s.main.SessionID)
	_, err = s.exchange(s.main, s.post, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), 202)
	if err != nil {
		return fmt.Errorf("initialized: %w", err)
	}
	return nil
}

// adopt builds the request heads of a session.
func (s *Session) adopt(id string) {
	s.ID, s.nextID = id, 1
	tail := " " + stub.Path + " HTTP/1.1\r\nHost: " + s.host + "\r\n" + "Mcp-Session-Id: " + id + "\r\nMcp-Protocol-Version: 2025-11-25\r\n"
	s.post = "POST" + tail + common + "Content-Length: "
	s.del = "DELETE" + tail + "User-Agent: mcp-bench/1\r\n\r\n"
	s.get = "GET" + tail + "User-Agent: mcp-bench/1\r\nAccept: text/event-stream\r\n\r\n"
}

// Close deletes the session.
func (s *Session) Close() error {
	if err := s.main.Send(s.del, nil); err != nil {
		return fmt.Errorf("DELETE: %w", err)
	}
	if err := s.main.ReadHead(); err != nil {
		return fmt.Errorf("DELETE: %w", err)
	}
	if _, err := s.main.ReadBody(); err != nil {
		return fmt.Errorf("DELETE: %w", err)
	}
	if s.main.Status != 200 && s.main.Status != 204 {
		return fmt.Errorf("DELETE: status %d", s.main.Status)
	}
	return nil
}

// List calls tools/list and checks that it holds at least one tool.
func (s *Session) List() error {
	id := s.id()
	s.msg = append(append(append(s.msg[:0], `{"jsonrpc":"2.0","id":`...), id...), `,"method":"tools/list"}`...)
	if err := s.main.Send(s.post, s.msg); err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	if err := s.finish(&call{id: id, list: true}); err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	return nil
}

// exchange sends a message and reads the whole answer.
func (s *Session) exchange(c *Conn, head string, msg []byte, status int) ([]byte, error) {
	if err := c.Send(head, msg); err != nil {
		return nil, err
	}
	if err := c.ReadHead(); err != nil {
		return nil, err
	}
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	if c.Status != status {
		return nil, fmt.Errorf("status %d: %.120q", c.Status, body)
	}
	return body, nil
}

func (s *Session) id() string {
	s.nextID++
	return strconv.Itoa(s.nextID)
}

// unexpected makes an error of a message that was not expected.
func unexpected(what string, msg []byte) error { return fmt.Errorf("%s: %.200q", what, msg) }

func eofIsFine(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Move continues the session on another connection.
func (s *Session) Move(main *Conn) { s.main = main }
