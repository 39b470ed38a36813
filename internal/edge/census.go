package edge

import (
	"net"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// census tells who has how many of the connections that a listener has accepted. Nobody counts
// them as they come and go: those that are parked come back under other numbers. They are
// looked at when the table is nearly full, and not all the time. It is for one goroutine.
type census struct {
	listener net.Addr
	tenant   func(net.Addr) string // "": of one who stands for many

	of   map[string]int // connections, by tenant
	next time.Time      // when to look again
}

// Bounds of how often the connections are looked at: once in so long, and in so many times what
// it took.
const (
	censusPause = 10 * time.Millisecond
	censusPart  = 10
)

// leaves reports whether a newcomer may have one of the last places of so many, and counts it then.
func (c *census) leaves(from net.Addr, places int) bool {
	tenant := c.tenant(from)
	if tenant == "" {
		return true
	}
	if began := time.Now(); began.After(c.next) {
		c.of = connections(places, c.listener, c.tenant)
		now := time.Now()
		c.next = now.Add(max(censusPause, censusPart*now.Sub(began)))
	}
	if budget.Reserved(c.of[tenant], places) > 0 {
		return false
	}
	c.of[tenant]++
	return true
}
