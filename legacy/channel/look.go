package channel

import (
	"time"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/observe"
)

// look describes a connection that is a session; begun is false before initialize.
func (c *Channel) look(id string) (sight observe.Sight, begun bool) {
	c.in.Lock()
	conv := c.conv
	c.in.Unlock()
	if conv == nil {
		return sight, false
	}
	return observe.Sight{ID: logfield.Short(id), Transport: c.transport, Began: c.born, Conversation: conv.Look()}, true
}

// Look tells what there is to see of every connection on which a session was begun.
func (cs *Registry) Look() (seen []observe.Sight) {
	for id, c := range cs.all() {
		if sight, begun := c.look(id); begun {
			seen = append(seen, sight)
		}
	}
	return seen
}

// reportEnd tells who watches that the session of a connection has ended.
func (c *Channel) reportEnd(cause error) {
	if c.opt.Watch != nil {
		c.opt.Watch.SessionEnded(observe.Session{
			Version: c.version, Transport: c.transport, Reason: message.ReasonOf(cause), Broken: c.broken(), Took: time.Since(c.born),
		})
	}
}

// broken reports whether the connection ended in an error.
func (c *Channel) broken() bool {
	select {
	case <-c.gone:
		return c.err != nil
	default:
		return false
	}
}

// End ends the connection with this shortened id, and reports whether there was one.
func (cs *Registry) End(short string, why error) bool {
	for id, c := range cs.all() {
		if logfield.Short(id) == short {
			c.HangUp(why)
			return true
		}
	}
	return false
}
