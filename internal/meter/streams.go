package meter

// StreamCost is what a request over HTTP/2 is charged for besides a large head, in bytes, as measured:
// until its response has left it has a goroutine with its stack, and buffers, of which a
// connection over HTTP/1 has one each.
const StreamCost = 12 << 10

// Bounds of the requests of one connection whose responses may have left: so many can have ended
// with nobody looking whether they have, and so many can have been refused, which are not charged.
const (
	mostUnseen  = 8
	mostRefused = 8
)

// streams are the requests over HTTP/2 that a connection is charged for: its client need not take
// the responses, and may have opened no window for them.
//
//	Stream ──▶ runs ──Ended──▶ unseen ──idle──▶ gone
//	                    └─────────Gone─────────▶ gone
type streams struct {
	cost       int // of all
	unseen     int // have ended, and their responses left or not
	unseenCost int
	refused    int // and not gone
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

// settleLocked says that all responses have left.
func (c *Conn) settleLocked() {
	c.streams.cost -= c.streams.unseenCost
	c.streams.unseen, c.streams.unseenCost = 0, 0
	c.chargeLocked()
}
