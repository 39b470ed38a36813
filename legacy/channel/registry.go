package channel

import (
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/observe"
)

// Registry holds the connections of a server that are sessions. Its methods are safe for
// concurrent use.
type Registry struct {
	limit int // of connections

	mu     sync.Mutex
	open   map[string]*Channel
	closed bool
}

// NewRegistry returns one for at most this many connections.
func NewRegistry(limit int) *Registry { return &Registry{limit: limit} }

// Room reports whether another connection would be taken that is charged to this account:
// the last places are not for who has many.
func (cs *Registry) Room(of *budget.Account) bool {
	kept := budget.Reserved(of.Sessions()-1, cs.limit)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.roomLocked(kept)
}

func (cs *Registry) roomLocked(kept int) bool { return !cs.closed && len(cs.open) < cs.limit-kept }

// Add takes a connection in, unless there are too many or the server closes.
func (cs *Registry) Add(id string, c *Channel) bool {
	kept := budget.Reserved(c.Account().Sessions()-1, cs.limit)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !cs.roomLocked(kept) {
		return false
	}
	if cs.open == nil {
		cs.open = make(map[string]*Channel)
	}
	cs.open[id] = c
	return true
}

// Get returns the connection of this id, nil when there is none.
func (cs *Registry) Get(id string) *Channel {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.open[id]
}

// Remove takes a connection out.
func (cs *Registry) Remove(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, id)
}

// Len returns how many there are.
func (cs *Registry) Len() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// Refuse takes no further connections.
func (cs *Registry) Refuse() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
}

// Close ends all connections. Their handlers take them out.
func (cs *Registry) Close(cause error) {
	for _, c := range cs.all() {
		c.Close(cause)
	}
}

// Vacate gives up the connections that no shutdown would wait for. It doesn't wait for clients that read nothing.
func (cs *Registry) Vacate(cause error) {
	for _, c := range cs.all() {
		if !c.awaited() {
			c.HangUp(cause)
		}
	}
}

// all returns the connections by their ids.
func (cs *Registry) all() map[string]*Channel {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	open := make(map[string]*Channel, len(cs.open))
	for id, c := range cs.open {
		open[id] = c
	}
	return open
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

// called returns the connection with this shortened id, nil: there is none.
func (cs *Registry) called(short string) *Channel {
	for id, c := range cs.all() {
		if logfield.Short(id) == short {
			return c
		}
	}
	return nil
}

// EndCall ends a call of the connection with this shortened id, and reports whether there was one.
func (cs *Registry) EndCall(short, call string) bool {
	c := cs.called(short)
	if c == nil {
		return false
	}
	conv := c.conversation()
	return conv != nil && conv.EndCall(call)
}

// End ends the connection with this shortened id, and reports whether there was one.
func (cs *Registry) End(short string, why error) bool {
	c := cs.called(short)
	if c != nil {
		c.HangUp(why)
	}
	return c != nil
}
