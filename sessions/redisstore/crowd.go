package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/sessions/store"
)

// crowd is what is under way on the connection that all share with what is small, in bytes.
//
// Up to window nobody waits, and it costs an addition. Beyond it everybody goes in turn by whose it is, until nobody waits any
// more: one who floods the connection has half of the window, and others go ahead of what it has waiting. So who comes to a full
// link of 1.5 MB/s waits for 0.1 s for what is under way, and for 0.3 s at the moment when the crowd comes together; over 10 ms to
// the server and back a window is 26 MB/s.
//
// In a cluster all nodes have the window together. Leases and pings, what is large, and the ends of sessions are not in it.
type crowd struct {
	bytes atomic.Int64 // under way, and waits for each one that waits for its turn
	queue *turns.Queue // its places are bytes
}

const (
	window = 256 << 10
	waits  = int64(1) << 40 // more than is ever under way

	eachCosts = 256     // bytes of keys and commands with each operation
	readCosts = 4 << 10 // for a reply of which only the server knows how large it is: no more of it is asked for at first

	// spare is for how long those that went in turn are under way at most: who has less of its own time left gets another.
	spare = time.Second

	// nobodys is who shares one part of the window: all those of whom nobody says whose they are.
	nobodys = "\x00"
)

func newCrowd() crowd { return crowd{queue: turns.New(window)} }

// Crowded implements store.Crowder. It says so before anybody waits, so that who does has said whose it is.
func (s *Store) Crowded() bool { return s.crowd.bytes.Load() > window/2 }

// enter has an operation with so many bytes go, unless it is to wait for its turn. What it entered with it is to leave with.
func (c *crowd) enter(bytes int) bool {
	if c.bytes.Add(int64(bytes)) <= window {
		return true
	}
	c.leave(bytes)
	return false
}

func (c *crowd) leave(bytes int) { c.bytes.Add(-int64(bytes)) }

// inTurn makes an operation of a session with so many bytes, once it is its turn. Who has hardly waited has its own time, and so
// goes together with others.
func (c *crowd) inTurn(ctx context.Context, session string, bytes int, operation func(context.Context) error) error {
	owner, bounds := store.TurnOf(ctx)
	if owner == "" {
		owner = nobodys
	}
	who := turns.Who{Principal: owner, Session: session}
	waiting, cancel := context.WithTimeout(bounds, turnPatience)
	c.bytes.Add(waits)
	_, err := c.queue.EnterWith(waiting, who, bytes)
	c.bytes.Add(int64(bytes) - waits)
	cancel()
	defer c.leave(bytes)
	if err != nil {
		return store.Slow(err)
	}
	defer c.queue.LeaveWith(who, bytes)
	if ends, ok := ctx.Deadline(); ok && time.Until(ends) < spare {
		ctx, cancel = context.WithTimeout(bounds, timeFor(bytes))
		defer cancel()
	}
	return store.Slow(operation(ctx))
}

// read makes an operation that reads so many bytes of a session at most. Once it is on its way it goes on to its end, or to its time's,
// though nobody waits for it any more: the reply comes over the connection all the same, before everybody else's, and counts until then.
func read[T any](ctx context.Context, s *Store, session string, bytes int, operation func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	begun, over := make(chan context.Context, 1), make(chan outcome, 1)
	atOnce := s.crowd.enter(bytes)
	go func() {
		toItsEnd := func(ctx context.Context) error {
			begun <- ctx
			bounded, cancel := withoutWhoWaits(ctx)
			defer cancel()
			value, err := operation(bounded)
			if !atOnce {
				err = store.Slow(err)
			}
			over <- outcome{value, err} // before ctx ends, which lasts until the return where it was made for this
			return err
		}
		if atOnce {
			_ = toItsEnd(ctx)
			s.crowd.leave(bytes)
			return
		}
		if err := s.crowd.inTurn(ctx, session, bytes, toItsEnd); err != nil {
			select {
			case over <- outcome{err: err}: // there was no turn
			default:
			}
		}
	}()
	select {
	case o := <-over:
		return o.value, o.err
	case ctx = <-begun:
	}
	select {
	case o := <-over:
		return o.value, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-over:
		return o.value, o.err
	default:
	}
	var none T
	if atOnce {
		return none, ctx.Err()
	}
	return none, store.Slow(ctx.Err())
}

// withoutWhoWaits returns a context that ends by its time alone.
func withoutWhoWaits(ctx context.Context) (context.Context, context.CancelFunc) {
	ends, ok := ctx.Deadline()
	if !ok {
		ends = time.Now().Add(largeTimeout)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), ends)
}
