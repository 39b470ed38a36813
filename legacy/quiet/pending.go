package quiet

import (
	"time"

	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/legacy/web"
)

// pendingWrite is what a client that is behind has yet to take.
type pendingWrite struct {
	rest  [][]byte // parts of parked.out, or of a constant
	room  signal   // wakes Drain
	taken int      // bytes since the client was last given WriteTimeout
	cut   bool     // Drain is to give up
}

// signal wakes one goroutine.
type signal chan struct{}

// Ready implements park.Owner.
func (a signal) Ready() {
	select {
	case a <- struct{}{}:
	default: // it is awake
	}
}

// Drain brings the client the rest, or gives it up.
func (p *parked) Drain() error {
	defer p.conns.opt.Gate.Exit()
	err := p.writePending()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = nil
	p.out.Release()
	if p.over {
		p.hangUpLocked()
		return errClosed
	}
	return err
}

// writePending writes whenever the socket has room.
func (p *parked) writePending() error {
	rooms := p.conns.writable.open()
	if rooms == nil {
		return errClosed
	}
	defer rooms.Drop(p.sock) // nobody closes it meanwhile
	room := p.pending.room
	timeout := time.NewTimer(p.conns.opt.WriteTimeout)
	defer timeout.Stop()
	for {
		watch, err := rooms.Watch(p.sock, park.Room, room)
		if err != nil {
			return err
		}
		select {
		case <-room:
		case <-timeout.C:
			err = ErrSlow
		}
		rooms.Forget(watch)
		if err != nil {
			return err
		}
		done, quick, err := p.writeMore()
		if done {
			return err
		}
		if quick {
			timeout.Reset(p.conns.opt.WriteTimeout)
		}
	}
}

// writeMore writes what the socket takes. It reports quick when that completes the
// part that a client must take within WriteTimeout.
func (p *parked) writeMore() (done, quick bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending.cut {
		return true, false, errClosed
	}
	rest, n, err := p.tryWriteLocked(p.pending.rest)
	p.pending.rest = rest
	if p.pending.taken += n; p.pending.taken >= web.WritePart {
		p.pending.taken, quick = 0, true
	}
	return err != nil || len(p.pending.rest) == 0, quick, err
}
