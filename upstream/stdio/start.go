package stdio

import (
	"context"
	"time"

	"github.com/mcpbridge/bridge/upstream"
)

// get returns a running child, starting one when that is due. Who comes while it starts
// waits for it.
func (s *Client) get(ctx context.Context, call *upstream.Call) (*child, error) {
	for {
		if wait, ends := s.crashes.refuses(call); wait > 0 { // maybe since it waits
			return nil, s.opt.refusal(wait, ends)
		}
		c, wait, err := s.current()
		switch {
		case err != nil:
			return nil, err
		case c != nil && c.takes():
			return c, nil
		case c != nil:
			err = s.await(ctx, c.ready)
		case wait > maxStartWait:
			err = &upstream.Failure{Cause: upstream.Unreachable, RetryAfter: wait, Detail: s.keepsEnding(ctx, wait)}
		default:
			due, cancel := context.WithTimeout(context.Background(), wait)
			err = s.await(ctx, due.Done())
			cancel()
		}
		if err != nil {
			return nil, err
		}
	}
}

// await waits for ch, the end of the client, or that of ctx, which is an error.
func (s *Client) await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
	case <-s.ctx.Done():
	case <-ctx.Done():
		return upstream.Interrupted(ctx, false)
	}
	return nil
}

// current returns the child, or how long its start has to wait.
func (s *Client) current() (*child, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, 0, &upstream.Failure{Cause: upstream.Canceled, Detail: "the upstream client is closed"}
	}
	if c := s.child; c != nil && !c.alive() && c.takes() { // it ended since the last call, and its greeting is over
		for of := range c.left {
			s.strike(of, c)
		}
		if c.ready != nil {
			s.greetings.over(c)
		}
		s.buryLocked(c.served.Load() || time.Since(c.begun) >= stable)
	}
	if s.child != nil {
		return s.child, 0, nil
	}
	if s.greetings.known() != nil {
		return nil, 0, notModern()
	}
	if wait := time.Until(s.startAt); wait > 0 {
		return nil, wait, nil
	}
	c, err := startChild(&s.opt)
	if err != nil {
		s.buryLocked(false)
		return nil, 0, s.opt.startFailure(err)
	}
	s.opt.Log.Info().Str("command", s.opt.name()).Int("pid", c.cmd.Process.Pid).Msg("upstream process started")
	s.child = c
	s.runs++
	c.run = s.runs
	if s.answers.Load() {
		c.ready, c.handshake = make(chan struct{}), s.greetings.shakesHands()
	}
	s.ending.Go(func() { <-c.done })
	s.ending.Go(func() { s.attend(c) })
	return c, 0, nil
}

// Running reports whether there is a process at present.
func (s *Client) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child != nil && s.child.alive()
}

// buryLocked lets go of a child, which was of use or crashed at its start, and says
// when the next may start.
func (s *Client) buryLocked(useful bool) {
	s.child, s.buried = nil, s.child
	if useful {
		s.delays.Reset()
	}
	s.startAt = time.Now().Add(s.delays.NextBackOff())
}
