package stdio

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
)

// maxOutgoing bounds the messages that wait for a process to read them.
const maxOutgoing = 256

// ErrEnded says that a process takes nothing any more.
var ErrEnded = errors.New("the process has ended")

// outlet is what waits for a process to read it.
type outlet struct {
	order inorder.Chain // of what is put there, also while it waits for room
	lines chan outgoing
	ended chan struct{} // closed when nobody takes lines any more
	once  sync.Once
}

// outgoing is a line, and what is charged for it until it is written.
type outgoing struct {
	text []byte
	held budget.Hold
}

func newOutlet() *outlet {
	return &outlet{lines: make(chan outgoing, maxOutgoing), ended: make(chan struct{})}
}

// put hands a line over at an account's expense, and waits while the process is slow to read. Lines are written in the
// order in which they come; once this one has its place, what it is of passes. Without a place it is
// for the caller to bring one after the other. The error is one of budget, that of ctx, or ErrEnded.
func (o *outlet) put(ctx context.Context, account *budget.Account, text []byte, place, of *inorder.Link) error {
	line := outgoing{text, budget.On(account)}
	if err := line.held.Carry(len(text)); err != nil {
		return err
	}
	select {
	case <-o.ended:
		line.held.Release()
		return ErrEnded
	default:
	}
	defer place.Pass()
	if place == nil || o.order.Add(place) {
		select {
		case o.lines <- line: // most often there is room
			place.Pass()
			of.Pass()
			o.settle()
			return nil
		default:
		}
	}
	of.Pass()
	select {
	case <-place.Time():
	case <-ctx.Done():
		line.held.Release()
		return ctx.Err()
	case <-o.ended:
		line.held.Release()
		return ErrEnded
	}
	select {
	case o.lines <- line:
		o.settle()
		return nil
	case <-ctx.Done():
		line.held.Release()
		return ctx.Err()
	case <-o.ended:
		line.held.Release()
		return ErrEnded
	}
}

// offer hands a small line over unless too many wait, and reports whether it did, or need not.
func (o *outlet) offer(text []byte) bool {
	select {
	case o.lines <- outgoing{text: text}:
	case <-o.ended:
	default:
		return false
	}
	return true
}

// settle lets go of what waits, once nobody takes it any more. Whoever puts something there looks
// afterwards, so nothing stays.
func (o *outlet) settle() {
	for {
		select {
		case <-o.ended:
		default:
			return
		}
		select {
		case line := <-o.lines:
			line.held.Release()
		default:
			return
		}
	}
}

// write writes what comes until there is an end, or nobody who takes it: the reader notices
// that as well.
func (o *outlet) write(w io.Writer) {
	for {
		select {
		case line := <-o.lines:
			_, err := w.Write(line.text)
			line.held.Release()
			if err != nil {
				return
			}
		case <-o.ended:
			return
		}
	}
}

// shut says that nobody takes lines any more. It is idempotent.
func (o *outlet) shut() {
	o.once.Do(func() { close(o.ended) })
	o.settle()
}
