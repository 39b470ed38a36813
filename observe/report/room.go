package report

import (
	"cmp"
	"time"
)

// clientLocked returns a kind of client. Where there is no room for another one, the one that did least
// makes it: names cost nothing, so what came first must not keep out what is really used.
func (b *Book) clientLocked(k key) *Client {
	if k.name == other {
		return b.othersLocked(k.revision)
	}
	if c := b.clients[k]; c != nil {
		return c
	}
	if len(b.clients) >= maxClients {
		b.pruneLocked()
	}
	if len(b.clients) >= maxClients {
		b.makeRoomLocked()
	}
	c := &Client{Name: k.name, Version: k.version, Revision: k.revision, First: b.now().UTC()}
	b.clients[k] = c
	return c
}

// othersLocked returns those of a revision that are not told apart.
func (b *Book) othersLocked(revision string) *Client {
	kinds := 0
	for k := range b.clients {
		if k.name == other {
			kinds++
		}
	}
	k := key{other, "", revision}
	if b.clients[k] == nil && kinds >= maxOthers {
		k.revision = other
	}
	c := b.clients[k]
	if c == nil {
		c = &Client{Name: k.name, Revision: k.revision, First: b.now().UTC()}
		b.clients[k] = c
	}
	return c
}

// makeRoomLocked counts the client that did least, of several the one that came last the longest ago,
// among the others.
func (b *Book) makeRoomLocked() {
	var least *Client
	var at key
	for k, c := range b.clients {
		if k.name != other && (least == nil || cmp.Or(cmp.Compare(c.Sessions+c.Calls, least.Sessions+least.Calls), c.Last.Compare(least.Last)) < 0) {
			at, least = k, c
		}
	}
	if least == nil {
		return
	}
	delete(b.clients, at)
	least.moved = &at
	b.othersLocked(at.revision).add(least)
}

// add counts what a client did with that of others, who need the bridge if one of them does.
func (c *Client) add(one *Client) {
	if c.Sessions+c.Calls == 0 {
		c.Modern, c.Relayed = one.Modern, one.Relayed
	}
	c.Modern, c.Relayed = c.Modern && one.Modern, c.Relayed && one.Relayed
	if one.First.Before(c.First) {
		c.First = one.First
	}
	if one.Last.After(c.Last) {
		c.Last = one.Last
	}
	c.Sessions += one.Sessions
	c.Calls += one.Calls
	c.Answers += one.Answers
	c.Progress += one.Progress
	c.Follows += one.Follows
	for what, n := range one.Lost {
		c.lose(what, n)
	}
}

// lose counts what it did not get, by at most so many words.
func (c *Client) lose(what string, n int) {
	if _, known := c.Lost[what]; !known && len(c.Lost) >= maxLosses {
		return
	}
	if c.Lost == nil {
		c.Lost = map[string]int{}
	}
	c.Lost[what] += n
}

// pruneLocked forgets who has not come for long.
func (b *Book) pruneLocked() {
	for k, c := range b.clients {
		if b.now().Sub(c.Last) > Days*24*time.Hour {
			delete(b.clients, k)
			c.moved = &k
		}
	}
}
