package main

import (
	"os"
	"time"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

func self() int { return os.Getpid() }

// fixedRate measures what a system adds to the latency of a plain call at a
// rate that leaves the machine mostly idle.
func (c *comparison) fixedRate() error {
	p50, p99 := map[string][]float64{}, map[string][]float64{}
	for round := range c.rounds {
		for i := range c.fleet.systems {
			sys := c.fleet.systems[(i+round)%len(c.fleet.systems)]
			r := load.Rate{Addr: sys.under.Addr, PerSecond: c.rate, Conns: 32, Warm: c.window / 4, Window: 2 * c.window}.Run(c.ctx)
			if c.ctx.Err() != nil {
				return c.ctx.Err()
			}
			if sys.name != report.Proxy {
				c.fail(sys.name+", fixed rate", &r.Errors)
			}
			p50[sys.name] = append(p50[sys.name], micros(r.Quantile(0.5)))
			p99[sys.name] = append(p99[sys.name], micros(r.Quantile(0.99)))
			c.progress("round %d  rate %-12s p50 %v  p99 %v  calls %d  errors %d", round+1, sys.name, r.Quantile(0.5).Round(time.Microsecond), r.Quantile(0.99).Round(time.Microsecond), r.Calls, r.Errors.Count())
		}
	}
	c.addedLatency("added p50", p50, report.Target{Must: 0.85, Aim: 0.70})
	c.addedLatency("added p99", p99, report.Target{Must: 0.80, Aim: 0.60})
	return nil
}

// addedLatency is the ratio of what bridge and proxy add to the direct server.
func (c *comparison) addedLatency(name string, q map[string][]float64, goal report.Target) {
	values, direct := map[string]float64{}, report.SpreadOf(q[report.Direct]).Median
	for system, v := range q {
		values[system] = report.SpreadOf(v).Median
	}
	ratio := 0.0
	if added := values[report.Proxy] - direct; added > 0 {
		ratio = (values[report.Bridge] - direct) / added
	}
	f := report.NewFigure(name+" ÷ proxy's", "µs, ratio", values, ratio, goal)
	f.Note = "at a fixed rate, counted from when a call fell due"
	c.report.Figures = append(c.report.Figures, f)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
