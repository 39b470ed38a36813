package budget

import "sync"

// Places are so many of something that parties take and give back: processes, questions
// that wait for people. The last eighth is for whoever has less than an eighth. Its methods
// are safe for concurrent use.
type Places struct {
	size int

	mu    sync.Mutex
	taken int
	of    map[string]int // by tenant
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

// Take takes a place for a tenant, "" when nobody knows whose it is; free gives it back, and
// may be called again. Without a place free is nil, and others says that there are some
// left, but not for this tenant.
func (p *Places) Take(tenant string) (free func(), others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.size
	if tenant != "" {
		room -= Reserved(p.of[tenant], p.size)
	}
	if p.taken >= room {
		return nil, p.taken < p.size
	}
	p.taken++
	p.of[tenant]++
	return sync.OnceFunc(func() { p.free(tenant) }), false
}

func (p *Places) free(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[tenant]--; p.of[tenant] == 0 {
		delete(p.of, tenant)
	}
}
