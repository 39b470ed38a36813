package relay

import (
	"fmt"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
)

// Places bounds how many processes serve one session each. The last ones are not for a
// party that has many. Its methods are safe for concurrent use.
type Places struct {
	size int

	mu    sync.Mutex
	taken int
	of    map[string]int // by party
}

// NewPlaces returns so many places.
func NewPlaces(size int) *Places { return &Places{size: size, of: make(map[string]int)} }

// Size returns how many there are, Taken how many of them are taken.
func (p *Places) Size() int { return p.size }

// Taken is described with Size.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Take takes a place for a party, "" when nobody knows whose it is; free gives it back.
func (p *Places) Take(party string) (free func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.size
	if party != "" {
		room -= budget.Kept(p.of[party], p.size)
	}
	if p.taken >= room {
		text := fmt.Sprintf("all %d processes of this server are in use (limits.children); try again later", p.size)
		if room < p.size && p.taken < p.size {
			text = fmt.Sprintf("the last of the %d processes of this server are for others (limits.children); try again later", p.size)
		}
		return nil, fault.Internal(text, fault.Reason("limit"), fault.Limit("limits.children"))
	}
	p.taken++
	p.of[party]++
	return sync.OnceFunc(func() { p.free(party) }), nil
}

func (p *Places) free(party string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[party]--; p.of[party] == 0 {
		delete(p.of, party)
	}
}
