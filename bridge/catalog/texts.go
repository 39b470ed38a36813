package catalog

import (
	"bytes"
	"sync"
)

// texts lets sessions share what their clients declared: thousands of clients of
// one kind say the same of themselves. The zero texts is empty.
type texts struct {
	mu    sync.Mutex
	known map[string][]byte
	bytes int
}

// Bounds of texts, in bytes. Longer ones are not shared, and when there are too many
// kinds sharing begins anew.
const (
	maxTexts     = 256
	maxTextSize  = 64 << 10
	maxTextBytes = 2 << 20 // of all
)

// share returns a copy of text, which nobody may change, nil for nil.
func (t *texts) share(text []byte) []byte {
	if len(text) == 0 || len(text) > maxTextSize {
		return bytes.Clone(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[string(text)]; ok {
		return known
	}
	if t.known == nil || len(t.known) >= maxTexts || t.bytes+len(text) > maxTextBytes {
		t.known, t.bytes = make(map[string][]byte), 0
	}
	t.bytes += len(text)
	shared := bytes.Clone(text)
	t.known[string(shared)] = shared
	return shared
}
