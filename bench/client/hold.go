package client

import (
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/mcp"
)

// Held is a call that has asked its question and was not answered yet. Its
// stream is open on the session's main connection.
type Held struct {
	s  *Session
	c  call
	e  events
	id []byte
}

// Suspend calls an asking tool and reads up to its question.
func (s *Session) Suspend(tool, nonce string) (*Held, error) {
	h := &Held{s: s, c: call{id: s.id(), tool: tool, nonce: nonce}}
	if err := s.send(&h.c); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if err := s.main.ReadHead(); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if s.main.Status != 200 || !s.main.SSE {
		return nil, fmt.Errorf("%s: status %d, stream %t", tool, s.main.Status, s.main.SSE)
	}
	h.e = s.main.events()
	msg, err := h.e.next()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if err := h.c.question(msg); err != nil {
		return nil, err
	}
	h.id = append([]byte(nil), scan.Get(msg, "id")...)
	s.msg = nil // thousands may be held: keep nothing that is not needed
	return h, nil
}

// Resume answers on conn and reads the stream to its end.
func (h *Held) Resume(conn *Conn) error {
	h.s.main.arm()
	if err := h.s.answer(conn, &h.c, h.id); err != nil {
		return err
	}
	for {
		msg, err := h.e.next()
		if err != nil {
			return fmt.Errorf("held call: %w", err)
		}
		done, err := h.s.handle(&h.c, msg)
		if err != nil {
			return err
		}
		if done {
			return h.e.drain()
		}
	}
}

// Rest lifts the deadline from the held stream.
func (h *Held) Rest() { h.s.main.rest() }

// Listen opens the session's standalone stream on its main connection.
func (s *Session) Listen() error {
	if err := s.main.Send(s.get, nil); err != nil {
		return fmt.Errorf("GET: %w", err)
	}
	if err := s.main.ReadHead(); err != nil {
		return fmt.Errorf("GET: %w", err)
	}
	if s.main.Status != 200 || !s.main.SSE {
		return fmt.Errorf("GET: status %d, stream %t", s.main.Status, s.main.SSE)
	}
	s.main.rest()
	return nil
}

// Notifications reads the standalone stream and calls changed for every
// tools list-changed notification, until the connection ends or fails.
func (s *Session) Notifications(changed func()) error {
	e := s.main.events()
	for {
		msg, err := e.next()
		if err != nil {
			return err
		}
		if !scan.Is(scan.Get(msg, "method"), mcp.NotificationToolsListChanged) {
			return errors.New("unexpected message on the standalone stream")
		}
		changed()
	}
}
