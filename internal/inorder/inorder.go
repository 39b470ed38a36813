// Package inorder has work begin in the order in which it came, though each piece runs on a
// goroutine of its own: the requests of a connection, the changes of one session, what goes into
// one pipe.
//
//	       all before it have passed             Pass
//	waits ──────────────────────────▶ its time ──────▶ over
//	  └──────────────── Pass: given up ──────────────────┘
//
// A link that is given up while it waits holds up nobody, and overtakes nobody either: whoever
// is behind it goes on waiting for those before it. Only beginnings are in order: whoever has begun, or
// cannot for now, passes and goes on.
package inorder

import "sync"

// Chain is the order. Its zero value is one without links, and it is safe for concurrent use.
type Chain struct {
	mu          sync.Mutex
	first, last *Link // first is the one whose time it is; nil: none is left
}

// Link is the place of one piece of work. It belongs to what it is for, and must not be copied once
// it is in a chain. A nil Link, like one in no chain, waits for nobody.
type Link struct {
	chain *Chain

	// Guarded by the chain's lock.
	kept  bool // End does not pass
	prev  *Link
	next  *Link
	over  bool
	start func() // to be called when its time has come; nil: nobody waits for that
}

// Add puts a link at the end, and reports whether its time has come.
func (c *Chain) Add(l *Link) (now bool) {
	l.chain = c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		c.first, c.last = l, l
		return true
	}
	c.last.next, l.prev = l, c.last
	c.last = l
	return false
}

// When has start called, once, when the link's time has come, at once if it has, or when the link is given up. It is
// called by whoever passes, and must not wait.
func (l *Link) When(start func()) {
	if l != nil && l.chain != nil && l.waits(start) {
		return
	}
	start()
}

// waits leaves start to whoever passes, and reports false where nobody will.
func (l *Link) waits(start func()) bool {
	l.chain.mu.Lock()
	defer l.chain.mu.Unlock()
	if l.over || l.chain.first == l {
		return false
	}
	l.start = start
	return true
}

// Time returns what is closed when the link's time has come.
func (l *Link) Time() <-chan struct{} {
	come := make(chan struct{})
	l.When(func() { close(come) })
	return come
}

// Pass lets the next one begin, when all before it have passed, too. It may be called again.
func (l *Link) Pass() {
	l.passUnless(false)
}

// Keep leaves it to the caller to pass: End, which whoever began the link calls, does so no more.
func (l *Link) Keep() {
	if l == nil || l.chain == nil {
		return
	}
	l.chain.mu.Lock()
	defer l.chain.mu.Unlock()
	l.kept = true
}

// End passes, unless somebody keeps the link.
func (l *Link) End() { l.passUnless(true) }

func (l *Link) passUnless(kept bool) {
	if l == nil || l.chain == nil {
		return
	}
	own, next := l.chain.pass(l, kept)
	if own != nil {
		own()
	}
	if next != nil {
		next()
	}
}

// pass ends a link, unless it is kept and that counts, and returns what is to be called: what it waited with itself, and what the one does whose time
// has come by that.
func (c *Chain) pass(l *Link, kept bool) (own, next func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.over || kept && l.kept {
		return nil, nil
	}
	l.over = true
	own, l.start = l.start, nil
	if c.first != l {
		if l.prev.next = l.next; l.next != nil {
			l.next.prev = l.prev
		} else {
			c.last = l.prev
		}
		l.prev, l.next = nil, nil
		return own, nil
	}
	c.first, l.next = l.next, nil
	if c.first == nil {
		c.last = nil
		return own, nil
	}
	c.first.prev = nil
	next, c.first.start = c.first.start, nil
	return own, next
}
