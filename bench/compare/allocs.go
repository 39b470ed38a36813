package main

import (
	"time"

	"github.com/mcpbridge/bridge/bench/control"
	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

// allocs counts what a plain call allocates in the whole process of the proxy
// and of the bridge. The load comes from this process, so that nothing else
// allocates there.
func (c *comparison) allocs() error {
	if err := c.fleet.startSystems(true); err != nil {
		return err
	}
	objects, bytes := map[string]float64{}, map[string]float64{}
	for _, sys := range c.fleet.systems[1:] {
		var m [2]control.Memory
		n := 0
		var failed error
		mark := func() {
			var err error
			if m[n], err = control.Read(sys.under.Control, false); err != nil {
				failed = err
			}
			n++
		}
		r := load.Closed{Addr: sys.addr, Kind: load.Plain, Clients: c.clients, Sessions: 1, Tools: 1, Warm: c.window / 2, Window: c.window, Mark: mark}.Run(c.ctx)
		if failed != nil {
			return failed
		}
		if sys.name != report.Proxy {
			c.fail(sys.name+", allocations", &r.Errors)
		}
		if r.Calls > 0 {
			objects[sys.name] = float64(m[1].Mallocs-m[0].Mallocs) / float64(r.Calls)
			bytes[sys.name] = float64(m[1].TotalAlloc-m[0].TotalAlloc) / float64(r.Calls)
		}
		c.progress("allocations  %-12s %.1f objects, %.0f bytes per plain call", sys.name, objects[sys.name], bytes[sys.name])
	}
	c.report.Figures = append(c.report.Figures,
		report.NewFigure("allocations per plain call", "objects", objects, objects[report.Bridge], report.Target{Must: 45, Aim: 35}),
		report.NewFigure("allocated per plain call", "bytes", bytes, bytes[report.Bridge], report.Target{Must: 4 << 10, Aim: 3 << 10}))
	return c.fleet.startSystems(c.open)
}

// settle is how long memory is given to come to rest before it is read: longer
// than the second after which a quiet stream may be put aside.
const settle = 3 * time.Second
