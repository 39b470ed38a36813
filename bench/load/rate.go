package load

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bench/client"
)

var errNoSession = errors.New("load: the session could not be opened")

// Rate describes an open loop: calls fall due at fixed intervals whatever the
// answers do, and a latency counts from the moment its call fell due, so that a
// stall is charged to every call it delayed (no coordinated omission).
type Rate struct {
	Addr      string
	PerSecond int
	Conns     int // calls that may be under way at once
	Warm      time.Duration
	Window    time.Duration
	Mark      func() // called before the warm-up and after the window; may be nil
}

// due is a call that was sent.
type due struct {
	pending *client.Pending
	at      time.Time
	err     error
}

// slot is one session on its own connection, with the goroutine that reads its
// answers. The pacer writes, the slot reads: so a call leaves on time even when
// the machine is slow to wake a goroutine.
type slot struct {
	user *user
	due  chan due
}

// Run opens the sessions and keeps the rate for the warm-up and the window.
func (r Rate) Run(ctx context.Context) *Result {
	res := &Result{}
	free := make(chan *slot, r.Conns)
	slots := make([]*slot, 0, r.Conns)
	for range r.Conns {
		u, err := newUser(r.Addr, 1)
		res.Errors.Add(err)
		if err == nil {
			s := &slot{user: u, due: make(chan due, 1)}
			slots = append(slots, s)
			free <- s
		}
	}
	if len(slots) == 0 {
		return res
	}
	call(r.Mark)
	from := time.Now().Add(r.Warm)
	var wg sync.WaitGroup
	latencies := make([][]time.Duration, len(slots))
	for i, s := range slots {
		wg.Go(func() { latencies[i] = s.read(from, free, &res.Errors) })
	}
	r.pace(ctx, from.Add(r.Window), free)
	for _, s := range slots {
		close(s.due)
	}
	wg.Wait()
	call(r.Mark)
	for _, s := range slots {
		s.user.leave(&res.Errors)
	}
	res.Latencies = slices.Concat(latencies...)
	slices.Sort(res.Latencies)
	res.Calls, res.Wall = int64(len(res.Latencies)), r.Window
	return res
}

// pace sends the calls as they fall due. It keeps a thread of its own, because
// the runtime's timers are only good to about a millisecond.
func (r Rate) pace(ctx context.Context, end time.Time, free chan *slot) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	preciseTimers()
	interval := time.Second / time.Duration(r.PerSecond)
	for at := time.Now(); at.Before(end) && ctx.Err() == nil; at = at.Add(interval) {
		sleepUntil(at)
		s := <-free
		p, err := s.user.sessions[0].Start(Plain.tool(), nonce())
		s.due <- due{pending: p, at: at, err: err}
	}
}

// read reads answers until the pacer is done.
func (s *slot) read(from time.Time, free chan *slot, errs *Errors) []time.Duration {
	var latencies []time.Duration
	for d := range s.due {
		err := d.err
		if err == nil {
			err = d.pending.Finish()
		}
		if took := time.Since(d.at); err == nil && !d.at.Before(from) {
			latencies = append(latencies, took)
		}
		if err != nil {
			errs.Add(err)
			s.user.main.Close()
		}
		free <- s
	}
	return latencies
}
