package store

import (
	"context"
	"errors"
	"fmt"
)

// Large is from how many bytes on a value is large: an engine behind a network has such wait for each other, so that
// what is small waits for none of them.
const Large = 16 << 10

// ErrSlow says that an operation with large values, with who knows how many, or that waited for its turn, was not over in its
// time. That says nothing about whether the engine can be reached.
var ErrSlow = fmt.Errorf("the store took too long for what is large, or waited for its turn: %w", context.DeadlineExceeded)

// Slow returns ErrSlow in place of an error that says no more than that time is up.
func Slow(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrSlow
	}
	return err
}

// Turn says of an operation that may have to wait for others whose it is: of those with large values, and of all while the store
// is Crowded.
type Turn struct {
	Owner string // behind whose others it waits for its turn; "": those of its session
	// Patience bounds the operation in place of its own context where an engine has it wait for its turn: that takes as long as
	// the values of others, and what follows as long as its own are large. nil: its own context does.
	Patience context.Context
}

type turnKey struct{}

// Crowder is a Store that at times has what is small wait for its turn, too.
type Crowder interface {
	// Crowded reports that, or that it is about to.
	Crowded() bool
}

// Crowded reports whether operations are to say whose they are though nothing in them is large.
func Crowded(s Store) bool {
	c, ok := s.(Crowder)
	return ok && c.Crowded()
}

// Crowded implements Crowder.
func (s *Sealed) Crowded() bool { return Crowded(s.Store) }

// Crowded implements Crowder.
func (m *Monitored) Crowded() bool { return Crowded(m.Store) }

// WithTurn has an operation's context say that.
func WithTurn(ctx context.Context, turn Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, turn)
}

// TurnOf returns what an operation's context says, and the one that bounds it where it waits for its turn.
func TurnOf(ctx context.Context) (owner string, bounds context.Context) {
	turn, _ := ctx.Value(turnKey{}).(Turn)
	if turn.Patience == nil {
		return turn.Owner, ctx
	}
	return turn.Owner, turn.Patience
}
