package catalog

import (
	"bytes"
	"hash/maphash"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
)

// joined is what servers said of themselves to the sessions that there are: each keeps that, and
// those who were told the same share it. It is charged once, for as long as there is one.
type joined struct {
	seed maphash.Seed

	mu    sync.Mutex
	known map[uint64]*Server // by the hash of what was said
	bytes int
	held  budget.Hold // of those bytes
}

// costOf is what a server's words are charged for, in bytes: themselves, and what clients of each
// version are told of them.
func costOf(s *Server) int { return len(s.Discover) * (1 + len(mcp.Legacy)) }

// add does what Catalog.Join says.
func (j *joined) add(s *Server) (*Server, error) {
	if s.Discover == nil {
		return s, nil
	}
	key := maphash.Bytes(j.seed, s.Discover)
	j.mu.Lock()
	defer j.mu.Unlock()
	if same := j.known[key]; same != nil && same.Version == s.Version && bytes.Equal(same.Discover, s.Discover) {
		s = same
	}
	if s.users == 0 {
		if err := j.held.Set(j.bytes + costOf(s)); err != nil {
			return nil, err
		}
		j.bytes += costOf(s)
		j.known[key] = s
	}
	s.users++
	return s, nil
}

// remove does what Catalog.Leave says.
func (j *joined) remove(s *Server) {
	if s.Discover == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	s.users = 0
	if key := maphash.Bytes(j.seed, s.Discover); j.known[key] == s {
		delete(j.known, key)
	}
	j.bytes = max(0, j.bytes-costOf(s))
	_ = j.held.Set(j.bytes) // less is never refused
}
