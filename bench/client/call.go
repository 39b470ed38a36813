package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/bench/stub"
	"github.com/mcpbridge/bridge/mcp"
)

// call is one request in flight and what must still come for it.
type call struct {
	id, tool, nonce string
	list            bool
	token           string
	progress        int // last progress value seen
	round           int // questions seen
}

// Call calls a tool and checks everything that comes back: the text holds this
// call's nonce, every question is this call's and comes once, progress rises
// by one to its total.
func (s *Session) Call(tool, nonce string) error {
	c := call{id: s.id(), tool: tool, nonce: nonce}
	if err := s.send(&c); err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	if err := s.finish(&c); err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	return nil
}

// Pending is a call that was sent and not read yet.
type Pending struct {
	s *Session
	c call
}

// Start sends a call; the caller reads its answer with Finish, possibly on
// another goroutine, before it starts the next one.
func (s *Session) Start(tool, nonce string) (*Pending, error) {
	p := &Pending{s: s, c: call{id: s.id(), tool: tool, nonce: nonce}}
	if err := s.send(&p.c); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	return p, nil
}

// Finish reads and checks the answer.
func (p *Pending) Finish() error {
	if err := p.s.finish(&p.c); err != nil {
		return fmt.Errorf("%s: %w", p.c.tool, err)
	}
	return nil
}

// send writes the tools/call.
func (s *Session) send(c *call) error {
	b := append(append(s.msg[:0], `{"jsonrpc":"2.0","id":`...), c.id...)
	b = append(append(b, `,"method":"tools/call","params":{"name":"`...), c.tool...)
	b = append(append(b, `","arguments":{"n":"`...), c.nonce...)
	b = append(b, `","text":"a small argument as calls have it","limit":20}`...)
	if c.tool == stub.Steps {
		c.token = c.id
		b = append(append(append(b, `,"_meta":{"progressToken":`...), c.token...), '}')
	}
	s.msg = append(b, `}}`...)
	return s.main.Send(s.post, s.msg)
}

// finish reads the answer to c, answering questions on the way.
func (s *Session) finish(c *call) error {
	if err := s.main.ReadHead(); err != nil {
		return err
	}
	if s.main.Status != 200 {
		body, _ := s.main.ReadBody()
		return fmt.Errorf("status %d: %.120q", s.main.Status, body)
	}
	if !s.main.SSE {
		body, err := s.main.ReadBody()
		if err != nil {
			return err
		}
		return c.response(body)
	}
	err := s.follow(c)
	if err != nil {
		s.main.Close() // an abandoned stream leaves the connection unusable
	}
	return err
}

// follow reads a stream to its response and its end.
func (s *Session) follow(c *call) error {
	e := s.main.events()
	for {
		msg, err := e.next()
		if errors.Is(err, io.EOF) {
			return errors.New("stream ended without a response")
		}
		if err != nil {
			return err
		}
		done, err := s.handle(c, msg)
		if err != nil {
			return err
		}
		if done {
			return e.drain()
		}
	}
}

// handle takes one message of a stream; done is true for the response.
func (s *Session) handle(c *call, msg []byte) (done bool, err error) {
	method, ok := scan.Text(scan.Get(msg, "method"))
	switch {
	case !ok:
		return true, c.response(msg)
	case string(method) == mcp.NotificationProgress:
		return false, c.step(msg)
	case string(method) == mcp.MethodElicitationCreate:
		if err := c.question(msg); err != nil {
			return false, err
		}
		return false, s.answer(s.side, c, scan.Get(msg, "id"))
	}
	return false, unexpected("unexpected message", msg)
}

// step checks one progress notification.
func (c *call) step(msg []byte) error {
	params := scan.Get(msg, "params")
	n, err := strconv.Atoi(string(scan.Get(params, "progress")))
	if err != nil || c.token == "" || string(scan.Get(params, "progressToken")) != c.token || n != c.progress+1 {
		return unexpected("lost, reordered or foreign progress", msg)
	}
	c.progress = n
	return nil
}

// question checks that a question is this call's next one.
func (c *call) question(msg []byte) error {
	want := stub.AppendQuestion(nil, c.nonce, c.round)
	if scan.Get(msg, "id") == nil || !scan.Is(scan.Path(msg, "params", "message"), string(want)) || scan.Path(msg, "params", "requestedSchema", "properties", "v") == nil {
		return unexpected("a question that is not this call's", msg)
	}
	c.round++
	return nil
}

// answer accepts the server request id on a connection of its own.
func (s *Session) answer(conn *Conn, c *call, id []byte) error {
	b := append(append(s.reply[:0], `{"jsonrpc":"2.0","id":`...), id...)
	b = append(b, `,"result":{"action":"accept","content":{"v":"`...)
	b = stub.AppendAnswer(b, c.nonce, c.round-1)
	s.reply = append(b, `"}}}`...)
	_, err := s.exchange(conn, s.post, s.reply, 202)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// response checks the response of c.
func (c *call) response(msg []byte) error {
	result := scan.Get(msg, "result")
	if string(scan.Get(msg, "id")) != c.id || result == nil {
		return unexpected("response", msg)
	}
	if scan.Get(result, "resultType") != nil || bytes.Contains(result, []byte(mcp.MetaPrefix)) {
		return unexpected("a modern member leaked", msg)
	}
	if c.list {
		if tools := scan.Get(result, "tools"); len(tools) < 3 || tools[0] != '[' {
			return unexpected("tools", msg)
		}
		return nil
	}
	if c.round != stub.Rounds(c.tool) {
		return fmt.Errorf("%d questions instead of %d", c.round, stub.Rounds(c.tool))
	}
	if c.tool == stub.Steps && c.progress != stub.StepCount {
		return fmt.Errorf("%d progress notifications instead of %d", c.progress, stub.StepCount)
	}
	content := scan.Get(result, "content")
	if len(content) == 0 || !stub.IsResult(scan.Get(content[1:], "text"), c.tool, c.nonce) {
		return unexpected("content of another call", msg)
	}
	return nil
}

// onlyEvent returns the message of a body of one event.
func onlyEvent(body []byte) ([]byte, error) {
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(trimCR(bytes.TrimSuffix(line, []byte("\n"))), []byte("data: ")); ok && len(data) > 0 {
			return data, nil
		}
	}
	return nil, unexpected("no event", body)
}
