package vouch

import (
	"bytes"
	"slices"
)

// refusals are what is told of a server's refusals to the other processes before it, and to the next
// one: whom it accepts each of them has to see for itself.
type refusals struct {
	Any    bool    `json:"any,omitempty"` // it has refused somebody something
	All    bool    `json:"all,omitempty"` // to say what it is, too
	Things []named `json:"things,omitempty"`
}

// named is a Thing that it has refused somebody.
type named struct {
	Method string `json:"method"`
	Name   []byte `json:"name,omitempty"` // any bytes
	Proven bool   `json:"proven,omitempty"`
}

// Bounds on what is told. A stranger can have as many things refused as they like: those that nobody
// was accepted for since make room, the earliest first.
const (
	mostTold    = 64
	longestTold = 256 // bytes of a name
)

// add takes one thing in, and reports whether that was news.
func (r *refusals) add(one named) bool {
	at := slices.IndexFunc(r.Things, func(o named) bool { return o.Method == one.Method && bytes.Equal(o.Name, one.Name) })
	switch {
	case at >= 0 && (r.Things[at].Proven || !one.Proven), len(one.Name) > longestTold:
		return false
	case at >= 0:
		r.Things[at].Proven = true
		return true
	case len(r.Things) >= mostTold:
		first := slices.IndexFunc(r.Things, func(o named) bool { return !o.Proven })
		if first < 0 {
			return false
		}
		r.Things = slices.Delete(r.Things, first, first+1)
	}
	one.Name = bytes.Clone(one.Name)
	r.Things = append(r.Things, one)
	return true
}

// merge takes in what others tell, and reports whether any of it was news.
func (r *refusals) merge(told refusals) (news bool) {
	news = told.Any && !r.Any || told.All && !r.All
	r.Any, r.All = r.Any || told.Any, r.All || told.All
	for _, one := range told.Things {
		news = r.add(one) || news
	}
	return news
}

// hear takes in what another process knows of the server.
func (c *Credentials) hear(told refusals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told.merge(told)
	c.all = c.all || told.All
	for _, one := range told.Things {
		thing := c.digest(Thing{one.Method, one.Name})
		c.refused.use(thing)
		if one.Proven {
			c.proven.use(thing)
		}
	}
	if told.Any {
		c.guards.Store(true)
	}
}

// tells returns what others are to know.
func (c *Credentials) tells() refusals {
	c.mu.RLock()
	defer c.mu.RUnlock()
	told := c.told
	told.Things = slices.Clone(told.Things)
	return told
}

// noteLocked has the others told of a thing that was refused.
func (c *Credentials) noteLocked(what Thing, proven bool) {
	if !c.told.merge(refusals{Any: true, All: what.opens(), Things: []named{{what.Method, what.Name, proven}}}) {
		return
	}
	select {
	case c.news <- struct{}{}:
	default: // they will be told of this, too
	}
}
