package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// refused is why a server cannot be used, in words for who has to repair that.
type refused struct {
	text string
	err  error
}

func (r *refused) Error() string { return r.text }
func (r *refused) Unwrap() error { return r.err }

// refusal says what the client's words mean about a server to which it could not connect.
func refusal(err error, encrypted bool) error {
	text, _, _ := strings.Cut(err.Error(), "\n") // what follows is for who writes programs
	switch {
	case errors.Is(err, context.DeadlineExceeded) && encrypted:
		text = fmt.Sprintf("it does not answer within %v; is it there, and does it speak TLS?", dialTimeout)
	case errors.Is(err, context.DeadlineExceeded):
		text = fmt.Sprintf("it does not answer within %v; is it there, and does it speak without TLS?", dialTimeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		text += "; does Redis run there, and is it the right port?"
	case strings.Contains(text, "unknown message type"):
		text = "it answers, but not as Redis does: " + text
	case strings.HasPrefix(text, "NOAUTH "):
		text = "it wants a password: redis://:PASSWORD@… or redis://USER:PASSWORD@…"
	case strings.HasPrefix(text, "NOPERM "):
		text += "; docs/scaling.md has the rights that the bridge needs"
	}
	return &refused{text, err}
}
