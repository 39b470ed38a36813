package redisstore

import (
	"context"
	"strings"
)

// Evicts returns the policy by which the server removes keys when it is full, "" when it
// removes none: a session that is evicted has ended. It is also "" where the user may not ask.
func (s *Store) Evicts(ctx context.Context) (policy string) {
	text, err := s.client.Do(ctx, s.client.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(text, "maxmemory_policy:")
	policy, _, _ = strings.Cut(rest, "\r\n")
	if policy == "noeviction" {
		return ""
	}
	return policy
}
