package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/bench/control"
	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/proc"
	"github.com/mcpbridge/bridge/bench/report"
	"github.com/mcpbridge/bridge/bench/stub"
)

// footprint is what a process holds at one moment, after its garbage has been
// collected and given back.
type footprint struct {
	rss        int64
	heap       int64 // live objects
	goroutines int
	fds        int
}

// weigh waits for a process to come to rest and reads its footprint.
func (c *comparison) weigh(sys *system) (footprint, error) {
	wait := settle
	if c.smoke {
		wait = 0
	}
	select {
	case <-c.ctx.Done():
		return footprint{}, c.ctx.Err()
	case <-time.After(wait):
	}
	m, err := control.Read(sys.under.Control, true)
	if err != nil {
		return footprint{}, err
	}
	fp := footprint{goroutines: m.Goroutines, heap: int64(m.Heap)}
	if fp.rss, err = proc.RSS(sys.under.PID()); err != nil {
		return fp, err
	}
	fp.fds, err = proc.FDs(sys.under.PID())
	return fp, err
}

// weighing collects footprints along a run.
type weighing struct {
	c     *comparison
	sys   *system
	steps []footprint
	err   error
}

func (w *weighing) step() {
	fp, err := w.c.weigh(w.sys)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.steps = append(w.steps, fp)
}

// per is the growth from one step to another per unit, in KiB.
func (w *weighing) per(from, to, n int) float64 {
	if n == 0 || to >= len(w.steps) {
		return 0
	}
	return float64(w.steps[to].rss-w.steps[from].rss) / float64(n) / 1024
}

// hold measures suspended calls: their memory, goroutines and descriptors
// while they wait, and whether all of it comes back.
func (c *comparison) hold() error {
	if err := c.fleet.startSystems(true); err != nil {
		return err
	}
	perFlow := map[string]float64{}
	for _, sys := range c.fleet.systems[1:] {
		n, err := c.heldFlows(sys)
		if err != nil {
			return err
		}
		w := &weighing{c: c, sys: sys}
		// A small run first, so that what the process sets up once is not
		// counted as memory of its flows.
		load.Hold{Addr: sys.addr, N: min(n, 50), Workers: c.clients}.Run()
		w.step()
		r := load.Hold{Addr: sys.addr, N: n, Workers: c.clients, Held: w.step}.Run()
		w.step()
		if w.err != nil {
			return w.err
		}
		perFlow[sys.name] = w.per(0, 1, r.Held)
		c.progress("hold  %-12s %d held of %d, %d completed, %.1f KiB each, opened in %v, answered in %v, errors %d %v",
			sys.name, r.Held, n, r.Done, perFlow[sys.name], r.Open.Round(time.Millisecond), r.Answer.Round(time.Millisecond), r.Errors.Count(), r.Errors.First())
		if sys.name == report.Bridge {
			c.fail("bridge, held calls", &r.Errors)
			c.holdFigures(w, r, perFlow)
		}
	}
	return c.fleet.startSystems(c.open)
}

// heldFlows is how many calls a system can hold: ReverseProxy needs two
// descriptors for each.
func (c *comparison) heldFlows(sys *system) (int, error) {
	limit, err := proc.DescriptorLimit()
	if err != nil {
		return 0, err
	}
	room := int(min(limit, 1<<20)) - 200
	n := c.n
	if n == 0 {
		n = min(room, 20_000)
	}
	if sys.name == report.Proxy {
		room /= 2
	}
	return min(n, room), nil
}

func (c *comparison) holdFigures(w *weighing, r *load.HoldResult, perFlow map[string]float64) {
	before, during, after := w.steps[0], w.steps[1], w.steps[2]
	n := float64(max(r.Held, 1))
	f := report.NewFigure("memory per suspended flow", "KiB", perFlow, perFlow[report.Bridge], report.Target{Must: 8, Aim: 4})
	f.Note = fmt.Sprintf("%d flows; %.2f goroutines and %.2f descriptors each; all answered in %v", r.Held,
		float64(during.goroutines-before.goroutines)/n, float64(during.fds-before.fds)/n, r.Answer.Round(time.Millisecond))
	done := report.NewFigure("suspended flows completed", "of those held", nil, float64(r.Done)/n, report.Target{Must: 1, Aim: 1, AtLeast: true})
	left := float64(after.rss-before.rss) / float64(max(during.rss-before.rss, 1))
	back := report.NewFigure("memory kept afterwards", "of the growth", nil, max(left, 0.001), report.Target{Must: 0.10, Aim: 0.10})
	back.Note = fmt.Sprintf("MiB resident before, held, after: %.1f %.1f %.1f; live heap: %.1f %.1f %.1f; goroutines before, after: %d %d",
		mib(before.rss), mib(during.rss), mib(after.rss), mib(before.heap), mib(during.heap), mib(after.heap), before.goroutines, after.goroutines)
	c.report.Figures = append(c.report.Figures, f, done, back)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// idle measures sessions that do nothing, then their open streams, then how
// fast a list change reaches all of them.
func (c *comparison) idle() error {
	if err := c.fleet.startSystems(true); err != nil {
		return err
	}
	session, stream, last := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, sys := range c.fleet.systems[1:] {
		w := &weighing{c: c, sys: sys}
		c.idleRun(sys, min(c.streams, 50), w, false)
		w.step()
		n, err := c.heldFlows(sys)
		if err != nil {
			return err
		}
		r := c.idleRun(sys, min(c.streams, n), w, true)
		if w.err != nil {
			return w.err
		}
		session[sys.name], stream[sys.name] = w.per(0, 1, r.Sessions), w.per(0, 2, r.Streams)
		for _, d := range r.Last {
			last[sys.name] = max(last[sys.name], float64(d)/float64(time.Millisecond))
		}
		c.progress("idle  %-12s %d sessions, %.1f KiB each, %.1f with a stream; list change last %v, middle %v; lost %d, twice %d, errors %d %v",
			sys.name, r.Sessions, session[sys.name], stream[sys.name], r.Last, r.Median, r.Lost, r.Duplicate, r.Errors.Count(), r.Errors.First())
		if sys.name == report.Bridge {
			c.fail("bridge, idle sessions", &r.Errors)
			if r.Lost+r.Duplicate > 0 {
				c.report.Errors = append(c.report.Errors, fmt.Sprintf("bridge, idle sessions: %d list changes lost, %d delivered twice", r.Lost, r.Duplicate))
			}
		}
	}
	delete(session, report.Proxy) // it has no sessions
	c.report.Figures = append(c.report.Figures,
		report.NewFigure("memory per session", "KiB", session, session[report.Bridge], report.Target{Must: 3, Aim: 1.5}),
		report.NewFigure("memory per session with a stream", "KiB", stream, stream[report.Bridge], report.Target{Must: 6, Aim: 4}),
		c.fanout(last))
	return c.fleet.startSystems(c.open)
}

func (c *comparison) fanout(last map[string]float64) report.Figure {
	f := report.NewFigure("list change, last of all streams", "ms", last, last[report.Bridge], report.Target{Must: 100, Aim: 50})
	f.Note = fmt.Sprintf("%d streams, %d upstream listens", c.streams, c.listens)
	return f
}

func (c *comparison) idleRun(sys *system, n int, w *weighing, measured bool) *load.IdleResult {
	l := load.Idle{Addr: sys.addr, N: n, Workers: c.clients, Wait: 10 * time.Second, Change: func() error { return change(sys.server) }}
	if measured {
		l.Changes, l.Opened = 5, w.step
		l.Streamed = func() {
			w.step()
			if s, err := stats(sys.server); err == nil {
				c.listens = s.Streams
			}
		}
	}
	return l.Run()
}

// change makes a server's list of tools change.
func change(p *proc.Process) error {
	resp, err := http.Post("http://"+p.Addr+stub.PathChanged, "", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
