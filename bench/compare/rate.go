package main

import (
	"time"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

// fixedRate measures what a system adds to the latency of a plain call at a
// rate that leaves the machine mostly idle.
func (c *comparison) fixedRate() error {
	p50, p99 := map[string][]float64{}, map[string][]float64{}
	for round := range c.rounds {
		for i := range c.fleet.systems {
			sys := c.fleet.systems[(i+round)%len(c.fleet.systems)]
			s, err := c.rateSample(sys, round)
			if err != nil {
				return err
			}
			c.report.Rates = append(c.report.Rates, s)
			p50[sys.name] = append(p50[sys.name], micros(s.P50))
			p99[sys.name] = append(p99[sys.name], micros(s.P99))
			c.progress("round %d  rate %-12s p50 %v  p99 %v  calls %d  errors %d", round+1, sys.name, s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond), s.Calls, s.Errors)
		}
	}
	c.addedLatency("added p50", p50, report.Target{Must: 0.85, Aim: 0.70})
	c.addedLatency("added p99", p99, report.Target{Must: 0.80, Aim: 0.60})
	return nil
}

func (c *comparison) rateSample(sys *system, round int) (report.RateSample, error) {
	u := c.usageOf(sys)
	r := load.Rate{Addr: sys.addr, PerSecond: c.rate, Conns: 32, Warm: c.window / 4, Window: 2 * c.window, Mark: u.mark}.Run(c.ctx)
	if c.ctx.Err() != nil {
		return report.RateSample{}, c.ctx.Err()
	}
	if sys.name != report.Proxy {
		c.fail(sys.name+", fixed rate", &r.Errors)
	}
	return report.RateSample{System: sys.name, Round: round, P50: r.Quantile(0.5), P99: r.Quantile(0.99), Calls: r.Calls, Errors: r.Errors.Count(), Foreign: u.foreign(c.report.CPUs)}, u.err
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
