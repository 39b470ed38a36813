package catalog

import (
	"bytes"
	"sync"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/translate"
)

// Declaration is what a client says of itself, as raw JSON, and what follows from it. Sessions share
// it, as thousands of clients of one kind say the same: nobody may change it.
type Declaration struct {
	ClientInfo []byte // nil when stateless
	Declared   []byte // capabilities as the client declared them
	Capable    []byte // as 2026-07-28 has them, to declare upstream (A.5); nil when stateless
}

// Undeclared is that of requests without a session.
var Undeclared = new(Declaration)

// declarationOf mirrors capabilities as far as the revision's exist in 2026-07-28 (A.5).
func declarationOf(v mcp.Version, clientInfo, capabilities []byte) *Declaration {
	d := &Declaration{ClientInfo: bytes.Clone(clientInfo), Declared: bytes.Clone(capabilities)}
	d.Capable = d.Declared // one copy of what most clients declare
	if caps := translate.ClientCapabilities(v, capabilities, true); !bytes.Equal(caps, d.Declared) {
		d.Capable = caps
	}
	return d
}

// shared has one value for all who say the same. The zero shared is empty.
type shared[V any] struct {
	mu    sync.Mutex
	known map[string]V
	bytes int
}

// Bounds of what is shared, in bytes. Longer texts are not, and when there are too many
// kinds sharing begins anew.
const (
	maxTexts     = 256
	maxTextSize  = 64 << 10
	maxTextBytes = 2 << 20 // of all
)

// share returns the value of those who say this, which is made for the first of them.
func (s *shared[V]) share(said []byte, value func() V) V {
	if len(said) == 0 || len(said) > maxTextSize {
		return value()
	}
	s.mu.Lock()
	known, ok := s.known[string(said)]
	s.mu.Unlock()
	if ok {
		return known
	}
	return s.add(string(said), value())
}

// add returns v, or what somebody else has added meanwhile.
func (s *shared[V]) add(said string, v V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[said]; ok {
		return known
	}
	if s.known == nil || len(s.known) >= maxTexts || s.bytes+len(said) > maxTextBytes {
		s.known, s.bytes = make(map[string]V), 0
	}
	s.bytes += len(said)
	s.known[said] = v
	return v
}
