package config

import (
	"fmt"
	"time"
)

// leastMemory is what a process needs, whoever its clients are.
const leastMemory Size = 32 << 20

// memory judges the limit of the whole process.
func (p *problems) memory(c *Config) {
	if size := c.Limits.Memory; size != 0 && size < leastMemory {
		p.add("limits.memory", "%s is too little for the bridge itself; use %s or more", size, leastMemory)
	}
	for i := range c.Upstreams {
		if c.Upstreams[i].Limits.Memory != c.Limits.Memory {
			p.add(fmt.Sprintf("%s[%d].limits.memory", upstreamsKey, i), "cannot be set for a single upstream: it is the whole process's; set it at the top level")
		}
	}
}

func (p *problems) times(t *Timeouts, label string) {
	for _, part := range []struct {
		key   string
		value time.Duration
	}{{"round", t.Round}, {"server-request", t.ServerRequest}} {
		if part.value > t.Flow {
			p.add(label+"timeouts."+part.key, "%s is longer than timeouts.flow (%s), which bounds it; lower this or raise that",
				formatDuration(part.value), formatDuration(t.Flow))
		}
	}
}
