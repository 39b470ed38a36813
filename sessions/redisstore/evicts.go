package redisstore

import (
	"context"
	"strconv"
	"strings"
)

// Evicts returns the policy by which the server removes keys when it is full, "" when it
// removes none: a session that is evicted has ended. It is also "" where the user may not ask.
func (s *Store) Evicts(ctx context.Context) (policy string) {
	policy = s.memory(ctx, "maxmemory_policy")
	if policy == "noeviction" {
		return ""
	}
	return policy
}

// MaxMemory returns how many bytes the server may take, 0 where it has no bound, or the user
// may not ask.
func (s *Store) MaxMemory(ctx context.Context) int64 {
	bytes, _ := strconv.ParseInt(s.memory(ctx, "maxmemory"), 10, 64)
	return bytes
}

// memory returns what the server says of its memory under a name; "" for nothing.
func (s *Store) memory(ctx context.Context, name string) string {
	text, err := s.client.Do(ctx, s.client.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(text, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
