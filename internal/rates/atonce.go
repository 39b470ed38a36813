package rates

import (
	"cmp"
	"sync"
)

// AtOnce is how much of a principal, and from an address, may be under way at the same
// time. 0 is without bounds.
type AtOnce struct{ Principal, Address int }

// crowd counts what is under way of one kind of sender. Who has nothing under way is not
// in it.
type crowd struct {
	most   int // 0: nothing is counted
	tiered bool

	mu     sync.Mutex
	inside map[string]int
}

// Enter counts n requests in, unless that were too many of the sender's principal or from
// its address. leave, which is not nil when ok, is to be called once when they are over.
func (l *Limiter) Enter(s Sender, n int) (leave func(), ok bool) {
	if l == nil || l.crowds[0].most == 0 && l.crowds[1].most == 0 {
		return func() {}, true
	}
	keys := [...]string{s.Principal, s.Address}
	for i := range l.crowds {
		if !l.crowds[i].enter(keys[i], n, l.FactorOf(s.Tier)) {
			for j := range i {
				l.crowds[j].leave(keys[j], n)
			}
			return nil, false
		}
	}
	return func() {
		for i := range l.crowds {
			l.crowds[i].leave(keys[i], n)
		}
	}, true
}

// FactorOf returns by what a tier multiplies what bounds a session and a principal.
func (l *Limiter) FactorOf(tier string) float64 {
	if l == nil {
		return 1
	}
	return cmp.Or(l.factor[tier], 1)
}

// Most returns the largest factor that a tier has, at least 1.
func (l *Limiter) Most() float64 {
	most := 1.0
	if l != nil {
		for _, f := range l.factor {
			most = max(most, f)
		}
	}
	return most
}

func (c *crowd) enter(key string, n int, factor float64) bool {
	if key == "" || c.most == 0 {
		return true
	}
	most := c.most
	if c.tiered {
		most = max(1, int(float64(most)*factor))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside[key]+n > most {
		return false
	}
	c.inside[key] += n
	return true
}

func (c *crowd) leave(key string, n int) {
	if key == "" || c.most == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside[key] -= n; c.inside[key] == 0 {
		delete(c.inside, key)
	}
}
