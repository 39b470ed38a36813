package meter

import (
	"runtime"
	"time"
)

// ReadTimeout is what net/http is to be told as a server's, so that it says of each request over HTTP/2
// that it has begun, also of those that it answers by itself (SetReadDeadline). It is as good as none.
const ReadTimeout = 365 * 24 * time.Hour

// StreamCost is what a request over HTTP/2 is charged for besides a large head, in bytes, as measured:
// until its response has left it has a goroutine with its stack, and buffers, of which a
// connection over HTTP/1 has one each.
const StreamCost = 12 << 10

// MostStreams is how many requests of one connection net/http is to serve at a time.
const MostStreams = 250

// Bounds of the requests of one connection whose responses may have left: so many can have ended
// with nobody looking whether they have, and so many can be without charge: refused, or unheard of.
const (
	mostUnseen  = 8
	mostRefused = 16
)

// streams are the requests over HTTP/2 that a connection is charged for: its client need not take
// the responses, and may have opened no window for them.
//
//	SetReadDeadline ──▶ unheard ──Stream──▶ runs ──Ended──▶ unseen ──idle──▶ gone
//	                       └─idle─▶ gone      └──────────Gone──────────────▶ gone
//
// Those stay unheard of that net/http answers by itself, since their heads are too long or malformed. Nothing tells
// when these have left, and of those that have ended it is not worth a look: on a connection that is never idle, as
// with an event stream, a few stay charged to its own address, MostStreams and mostUnseen of them at most.
type streams struct {
	over2      bool // they are there: it is HTTP/2
	unheard    int  // are charged, and not served yet
	unpaid     int  // the same without charge
	cost       int  // of all others
	unseen     int  // have ended, and their responses left or not
	unseenCost int
	refused    int // and not gone
}

// SetReadDeadline implements net.Conn. Over HTTP/2 net/http lifts the deadline for each request whose
// head it has read, and does not set one.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	begins, refused := t.IsZero() && c.streams.over2, c.refused
	charged := true
	if begins {
		c.streams.unheard = min(c.streams.unheard+1, MostStreams) // those that were reset early are counted, too
		if charged = c.chargeLocked(); !charged {
			c.streams.unheard--
			c.streams.unpaid++
		}
	}
	c.mu.Unlock()
	if !charged && !c.hears() {
		return c.Conn.Close()
	}
	if begins && refused {
		return nil // its time is short
	}
	return c.Conn.SetReadDeadline(t)
}

// hears reports whether few requests without charge are not served yet. The handlers of those that
// came before get a moment to begin.
func (c *Conn) hears() bool {
	for range 2 * mostRefused {
		c.mu.Lock()
		few := c.streams.unpaid <= mostRefused
		c.mu.Unlock()
		if few {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// Stream charges for a request over HTTP/2. It reports false when that is too much: the request is
// to be refused, and Refused says that the refusal has left. Who begins many that are refused and
// takes no refusals is cut off.
func (c *Conn) Stream(cost int) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams.unpaid > 0 {
		c.streams.unpaid--
	} else {
		c.streams.unheard = max(c.streams.unheard-1, 0)
	}
	c.streams.cost += cost
	if c.chargeLocked() {
		return true
	}
	c.streams.cost -= cost
	if c.streams.refused++; c.streams.refused > mostRefused {
		_ = c.Conn.Close()
	}
	return false
}

// Refused says that the answer to a request that was refused has left.
func (c *Conn) Refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams.refused--
}

// Ended says that the handler of a request has returned, and reports whether that is all: otherwise
// its response is to be sent first, until it has left, and then it is Gone.
func (c *Conn) Ended(cost int) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams.unseen == mostUnseen {
		return false
	}
	c.streams.unseen++
	c.streams.unseenCost += cost
	return true
}

// Gone says that nothing of a request is left.
func (c *Conn) Gone(cost int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams.cost -= cost
	c.chargeLocked()
}

// settleLocked says that all responses have left: it is HTTP/2, and idle.
func (c *Conn) settleLocked() {
	c.streams.over2, c.streams.unheard, c.streams.unpaid = true, 0, 0
	c.streams.cost -= c.streams.unseenCost
	c.streams.unseen, c.streams.unseenCost = 0, 0
	c.chargeLocked()
}
