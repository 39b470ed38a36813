package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

// What the plots vary: live sessions, and tools of the server.
var (
	sessionCounts = []int{16, 64, 256, 1024, 4096, 10_000, 20_000}
	toolCounts    = []int{5, 20, 50, 100, 250, 500, 1000}
)

// plot measures CPU per plain call against the number of sessions and the
// number of tools, and writes two pictures and their numbers.
func (c *comparison) plot() error {
	sessionCounts, toolCounts := sessionCounts, toolCounts
	if c.smoke {
		sessionCounts, toolCounts = sessionCounts[:2], toolCounts[:2]
	}
	sessions, err := c.against(sessionCounts, func(n int) (load.Closed, error) {
		return load.Closed{Clients: c.clients, Sessions: max(1, n/c.clients), Tools: 1}, c.fleet.startSystems(false)
	})
	if err != nil {
		return err
	}
	tools, err := c.against(toolCounts, func(n int) (load.Closed, error) {
		return load.Closed{Clients: c.clients, Sessions: 1, Tools: max(1, n-5), List: true}, c.fleet.restart(n)
	})
	if err != nil {
		return err
	}
	for name, p := range map[string]*report.Plot{
		"sessions.svg": {Title: "Cost of a plain call against live sessions", XLabel: "sessions", Series: sessions},
		"tools.svg":    {Title: "Cost of a plain call against tools of the server", XLabel: "tools, called at random", Series: tools},
	} {
		p.YLabel = "CPU per call, µs"
		if err := draw(filepath.Join(c.plots, name), p); err != nil {
			return err
		}
		c.report.Plots = append(c.report.Plots, *p)
	}
	return nil
}

// against measures the median over the rounds at each of the counts.
func (c *comparison) against(counts []int, prepare func(n int) (load.Closed, error)) ([]report.Series, error) {
	series := []report.Series{{Name: report.Proxy}, {Name: report.Bridge}}
	for _, n := range counts {
		l, err := prepare(n)
		if err != nil {
			return nil, err
		}
		l.Kind = load.Plain
		for i, sys := range c.fleet.systems[1:] {
			var cpu []float64
			for round := range c.rounds {
				s, err := c.sample(sys, l, round)
				if err != nil {
					return nil, err
				}
				cpu = append(cpu, micros(s.CPUPerCall))
			}
			series[i].X = append(series[i].X, float64(n))
			series[i].Y = append(series[i].Y, report.SpreadOf(cpu).Median)
			c.progress("plot  n=%-6d %-12s %.1f µs CPU per call", n, sys.name, series[i].Y[len(series[i].Y)-1])
		}
	}
	return series, nil
}

func draw(path string, p *report.Plot) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := p.SVG(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}
