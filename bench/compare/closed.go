package main

import (
	"os"
	"time"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/proc"
	"github.com/mcpbridge/bridge/bench/report"
)

// usage samples CPU time around a window: of the process under test, of all
// processes of the run, and of the machine.
type usage struct {
	pids   []int // the first one is the process under test
	cpu    [2][]time.Duration
	busy   [2]time.Duration
	stolen [2]time.Duration
	at     [2]time.Time
	n      int
	err    error
}

// usageOf samples a run against one system.
func (c *comparison) usageOf(sys *system) *usage {
	u := &usage{pids: []int{sys.under.PID(), os.Getpid()}}
	if sys.server != sys.under {
		u.pids = append(u.pids, sys.server.PID())
	}
	return u
}

// mark takes the first and the second sample.
func (u *usage) mark() {
	if u.n > 1 {
		return
	}
	for _, pid := range u.pids {
		d, err := proc.CPU(pid)
		if err != nil {
			u.err = err
		}
		u.cpu[u.n] = append(u.cpu[u.n], d)
	}
	u.busy[u.n], u.stolen[u.n], _ = proc.Busy()
	u.at[u.n] = time.Now()
	u.n++
}

// underTest is the CPU time of the process under test.
func (u *usage) underTest() time.Duration {
	if u.n < 2 {
		return 0
	}
	return u.cpu[1][0] - u.cpu[0][0]
}

// foreign is the share of the machine that went to processes that are no part
// of the run, or to other guests of the same host.
func (u *usage) foreign(cpus int) float64 {
	if u.n < 2 {
		return 0
	}
	own := time.Duration(0)
	for i := range u.pids {
		own += u.cpu[1][i] - u.cpu[0][i]
	}
	others := u.busy[1] - u.busy[0] - own + u.stolen[1] - u.stolen[0]
	whole := u.at[1].Sub(u.at[0]) * time.Duration(cpus)
	return max(0, float64(others)/float64(whole))
}

// closed measures the closed loop: round by round, kind by kind, the systems
// in turn and in an order that rotates, so that neither drift nor a position
// favours one of them.
func (c *comparison) closed() error {
	for round := range c.rounds {
		for _, kind := range c.kinds {
			for i := range c.fleet.systems {
				sys := c.fleet.systems[(i+round)%len(c.fleet.systems)]
				if c.ctx.Err() != nil {
					return c.ctx.Err()
				}
				s, err := c.sample(sys, load.Closed{Kind: kind, Clients: c.clients, Sessions: 1, Tools: 1}, round)
				if err != nil {
					return err
				}
				c.report.Samples = append(c.report.Samples, s)
				c.progress("round %d  %-9s %-12s %8.0f/s  %7.1f µs CPU  p50 %v  p99 %v  errors %d %s", round+1, kind, sys.name, s.PerSecond,
					float64(s.CPUPerCall)/1e3, s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond), s.Errors, s.FirstError)
			}
		}
	}
	c.report.Rows = report.Summarise(c.report.Samples)
	var beside []string
	for _, v := range c.beside {
		beside = append(beside, v.name)
	}
	c.report.Beside = report.CompareBeside(c.report.Samples, beside)
	return nil
}

// sample runs one closed loop against one system.
func (c *comparison) sample(sys *system, l load.Closed, round int) (report.Sample, error) {
	u := c.usageOf(sys)
	l.Addr, l.Warm, l.Window, l.Mark = sys.addr, c.window/5, c.window, u.mark
	profiled := c.profile(sys, l.Kind, round)
	r := l.Run(c.ctx)
	if err := <-profiled; err != nil {
		return report.Sample{}, err
	}
	s := report.Sample{System: sys.name, Kind: l.Kind, Round: round, PerSecond: r.PerSecond(), P50: r.Quantile(0.5), P99: r.Quantile(0.99), Errors: r.Errors.Count(), Foreign: u.foreign(c.report.CPUs)}
	if r.Calls > 0 {
		s.CPUPerCall = u.underTest() / time.Duration(r.Calls)
	}
	if err := r.Errors.First(); err != nil {
		s.FirstError = err.Error()
	}
	if sys.name != report.Proxy {
		c.fail(sys.name+", "+string(l.Kind), &r.Errors)
	}
	return s, u.err
}
