package load

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/bench/stub"
)

// Closed describes a closed loop: every client starts its next call when the
// one before has been answered and checked.
type Closed struct {
	Addr     string
	Kind     Kind
	Clients  int
	Sessions int           // sessions that each client takes turns with; at least 1
	Tools    int           // echo tools to choose from; at least 1
	List     bool          // whether each client lists the tools first
	Warm     time.Duration // before the window
	Window   time.Duration
	// Mark is called right before and right after the window, to sample the
	// process under test. May be nil.
	Mark func()
}

// Result is what a run found.
type Result struct {
	Calls     int64           // completed and checked within the window
	Wall      time.Duration   // length of the window
	Latencies []time.Duration // of those calls, sorted
	Errors    Errors          // of the whole run, warm-up included
}

// PerSecond is the rate of completed calls.
func (r *Result) PerSecond() float64 { return float64(r.Calls) / r.Wall.Seconds() }

// Quantile returns the latency at q (0..1), or 0 without calls.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(q*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

// phases of a closed loop
const (
	warming = iota
	measuring
	ending
)

// Run opens the sessions, warms up, measures one window and leaves.
func (c Closed) Run(ctx context.Context) *Result {
	res := &Result{}
	users := c.enter(res)
	var phase atomic.Int32
	var wg sync.WaitGroup
	latencies := make([][]time.Duration, len(users))
	for i, u := range users {
		wg.Go(func() { latencies[i] = c.loop(u, &phase, &res.Errors) })
	}
	pause(ctx, c.Warm)
	call(c.Mark)
	start := time.Now()
	phase.Store(measuring)
	pause(ctx, c.Window)
	phase.Store(ending)
	res.Wall = time.Since(start)
	call(c.Mark)
	wg.Wait()
	for _, u := range users {
		u.leave(&res.Errors)
	}
	res.Latencies = slices.Concat(latencies...)
	slices.Sort(res.Latencies)
	res.Calls = int64(len(res.Latencies))
	return res
}

// enter opens every client's sessions, a few clients at a time.
func (c Closed) enter(res *Result) []*user {
	users := make([]*user, c.Clients)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			sessions := max(c.Sessions, 1)
			if c.Kind == Whole {
				sessions = 0
			}
			u, err := newUser(c.Addr, sessions)
			res.Errors.Add(err)
			if c.List && len(u.sessions) > 0 {
				res.Errors.Add(u.sessions[0].List())
			}
			users[i] = u
		})
	}
	wg.Wait()
	return users
}

// loop calls until the end and returns the latencies within the window.
func (c Closed) loop(u *user, phase *atomic.Int32, errs *Errors) []time.Duration {
	latencies := make([]time.Duration, 0, 1<<14)
	names := toolNames(c.Kind, max(c.Tools, 1))
	rnd := rand.New(rand.NewPCG(1, uint64(len(names))))
	failures := 0
	for phase.Load() != ending && failures < 100 {
		start := time.Now()
		err := c.once(u, names, rnd)
		if err != nil {
			errs.Add(err)
			failures++
			u.main.Close()
			u.side.Close()
			continue
		}
		if phase.Load() == measuring {
			latencies = append(latencies, time.Since(start))
		}
	}
	return latencies
}

func (c Closed) once(u *user, names []string, rnd *rand.Rand) error {
	if c.Kind == Whole {
		return u.whole()
	}
	if len(u.sessions) == 0 {
		return errNoSession
	}
	s := u.sessions[0]
	if n := len(u.sessions); n > 1 {
		s = u.sessions[rnd.IntN(n)]
	}
	name := names[0]
	if len(names) > 1 {
		name = names[rnd.IntN(len(names))]
	}
	return s.Call(name, nonce())
}

func toolNames(k Kind, n int) []string {
	if k != Plain {
		return []string{k.tool()}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = stub.EchoName(i)
	}
	return names
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
