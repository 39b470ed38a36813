package legacy

import (
	"errors"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// Look tells what there is to see of every session at this moment.
func (h *HTTP) Look() []observe.Sight {
	open := h.table.All()
	seen := make([]observe.Sight, 0, len(open))
	for _, use := range open {
		sight := use.Value.look()
		sight.Used = use.At
		seen = append(seen, sight)
	}
	for id, c := range h.channels.all() {
		if sight, begun := c.look(id); begun {
			seen = append(seen, sight)
		}
	}
	return seen
}

func (s *session) look() observe.Sight {
	sight := observe.Sight{
		ID: logfield.Short(s.rec.ID), Transport: observe.StreamableHTTP, Began: s.born, Conversation: s.conv.Look(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		sight.Streams = append(sight.Streams, st.Look())
	}
	if s.standalone != nil {
		sight.Streams = append(sight.Streams, s.standalone.Look())
	}
	return sight
}

// look describes a connection that is a session; begun is false before initialize.
func (c *channel) look(id string) (sight observe.Sight, begun bool) {
	c.in.Lock()
	conv := c.conv
	c.in.Unlock()
	if conv == nil {
		return sight, false
	}
	return observe.Sight{ID: logfield.Short(id), Transport: c.transport, Began: c.born, Conversation: conv.Look()}, true
}

// EndSession ends the session with this shortened id, and reports whether there was one.
func (h *HTTP) EndSession(short string) bool {
	for _, use := range h.table.All() {
		if logfield.Short(use.Value.rec.ID) == short {
			return h.table.Remove(use.Value.rec.ID)
		}
	}
	for id, c := range h.channels.all() {
		if logfield.Short(id) == short {
			c.hangUp(errOperator)
			return true
		}
	}
	return false
}

// errOperator ends a connection that the people who run the bridge gave up.
var errOperator = errors.New("ended by who runs the bridge")

// all returns the connections by their ids.
func (cs *channels) all() map[string]*channel {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	open := make(map[string]*channel, len(cs.open))
	for id, c := range cs.open {
		open[id] = c
	}
	return open
}

// resumed tells who watches what a client got that came back for the rest of a stream.
func (h *HTTP) resumed(r observe.Resumption) {
	if h.opt.Watch != nil {
		h.opt.Watch.Resumed(r)
	}
}

// reasonOf tells why a session ended.
func reasonOf(cause error) observe.Reason {
	switch {
	case errors.Is(cause, sessions.Expired):
		return observe.Idle
	case errors.Is(cause, sessions.Evicted):
		return observe.Displaced
	case errors.Is(cause, downstream.ErrStopping):
		return observe.Stopped
	case errors.Is(cause, sessions.Removed):
		return observe.Deleted
	}
	return observe.Disconnected
}

// reportEnd tells who watches that the session of a connection has ended.
func (c *channel) reportEnd(cause error) {
	if c.opt.Watch != nil {
		c.opt.Watch.SessionEnded(observe.Session{
			Version: c.version, Transport: c.transport, Reason: reasonOf(cause), Took: time.Since(c.born),
		})
	}
}
