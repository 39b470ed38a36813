package fleet

import "slices"

// Renew makes sure of all calls that are kept, after a time in which other
// replicas may have taken this one for dead.
func (f *Fleet) Renew() {
	f.mu.Lock()
	members := slices.Concat(f.present, f.retired)
	f.mu.Unlock()
	for _, m := range members {
		m.Renew()
	}
}
