package upstream

import "io"

// meter tells how much of a response is held, while it is read. Events that were
// handed on are no longer held.
type meter struct {
	io.Reader
	held Held // may be nil
	size int  // bytes since the last event
	told int
}

// Read implements io.Reader. The error is that of held.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.size += n; m.held == nil || m.size < m.told+heldStep {
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
