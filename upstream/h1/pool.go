package h1

import "time"

const (
	// settleTime is how long a response whose answer is complete may take to
	// end before its connection is given up.
	settleTime = time.Second
	// maxUnsettled bounds the unsettled connections looked at for one request.
	maxUnsettled = 4
)

// takeIdle returns a usable idle connection, the most recently used one that
// is ready, or nil.
func (c *Client) takeIdle(now time.Time) *conn {
	var unsettled []*conn
	var found *conn
	for len(unsettled) < maxUnsettled {
		cn := c.pop()
		if cn == nil {
			break
		}
		switch cn.state(now) {
		case ready:
			found = cn
		case unready:
			unsettled = append(unsettled, cn)
			continue
		default:
			c.discard(cn)
			continue
		}
		break
	}
	for i := len(unsettled) - 1; i >= 0; i-- {
		c.put(unsettled[i])
	}
	return found
}

func (c *Client) pop() *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle) - 1
	if n < 0 {
		return nil
	}
	cn := c.idle[n]
	c.idle[n] = nil
	c.idle = c.idle[:n]
	return cn
}

// distrust closes the idle connections that nobody has heard of since the given
// time. The loss of a connection that had been used before mostly means that the
// server, or something on the way to it, has forgotten the others as well.
func (c *Client) distrust(since time.Time) {
	c.mu.Lock()
	var old []*conn
	kept := c.idle[:0]
	for _, cn := range c.idle {
		if cn.since.After(since) {
			kept = append(kept, cn)
		} else {
			old = append(old, cn)
		}
	}
	clear(c.idle[len(kept):])
	c.idle = kept
	c.mu.Unlock()
	for _, cn := range old {
		c.discard(cn)
	}
}

// put makes a connection idle.
func (c *Client) put(cn *conn) {
	c.mu.Lock()
	if c.closed || len(c.idle) >= c.opt.MaxIdle {
		c.mu.Unlock()
		c.discard(cn)
		return
	}
	c.idle = append(c.idle, cn)
	if !c.armed {
		c.arm()
	}
	c.mu.Unlock()
}

// arm starts the reaper's timer. c.mu is held.
func (c *Client) arm() {
	c.armed = true
	every := min(c.opt.IdleTimeout, settleTime)
	if c.reaper == nil {
		c.reaper = time.AfterFunc(every, c.reap)
		return
	}
	c.reaper.Reset(every)
}

// reap closes connections that were idle, or are unsettled, for too long.
func (c *Client) reap() {
	now := time.Now()
	c.mu.Lock()
	var old []*conn
	kept := c.idle[:0]
	for _, cn := range c.idle {
		if age := now.Sub(cn.since); age >= cn.reuse || cn.pending != "" && age >= settleTime && cn.state(now) == dead {
			old = append(old, cn)
		} else {
			kept = append(kept, cn)
		}
	}
	clear(c.idle[len(kept):])
	c.idle = kept
	c.armed = false
	if len(kept) > 0 && !c.closed {
		c.arm()
	}
	c.mu.Unlock()
	for _, cn := range old {
		c.discard(cn)
	}
}
