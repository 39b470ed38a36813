package upstream

import (
	"io"

	"github.com/mcpbridge/bridge/sse"
)

// meter tells how much of a response is held, while it is read. Events that were
// handed on are no longer held, nor is what a decoder has passed over: comments, and
// events without data, which may come for as long as the stream is open.
type meter struct {
	io.Reader
	held   Held         // may be nil
	events *sse.Decoder // reads from here; nil: all that is read is kept
	size   int
	told   int
}

// Read implements io.Reader. The error is that of held.
func (m *meter) Read(p []byte) (int, error) {
	if m.events != nil {
		m.size = m.events.Held()
	}
	n, err := m.Reader.Read(p)
	m.size += n
	if news := m.size - m.told; m.held == nil || -heldStep < news && news < heldStep {
		return n, err
	}
	m.told = m.size
	if short := m.held.Set(m.size); short != nil {
		return 0, short
	}
	return n, err
}

// handedOn notes that what was read has been dealt with.
func (m *meter) handedOn() {
	if m.size = 0; m.told > 0 {
		m.told = 0
		_ = m.held.Set(0) // less is never refused
	}
}

// Charge tells of a response that came as a whole.
func Charge(held Held, bytes int) error {
	if held == nil || bytes < heldStep {
		return nil
	}
	return held.Set(bytes)
}
