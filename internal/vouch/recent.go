package vouch

// recent is a set of digests that forgets those that were longest unused. It keeps as many
// as most at least, and at most twice as many.
type recent struct {
	most           int
	newer, earlier map[uint64]struct{}
}

func newRecent(most int) recent { return recent{most: most, newer: make(map[uint64]struct{})} }

// fresh reports whether a digest would not be forgotten soon; has, whether it is known.
func (r *recent) fresh(key uint64) bool {
	_, ok := r.newer[key]
	return ok
}

func (r *recent) has(key uint64) bool {
	_, ok := r.earlier[key]
	return ok || r.fresh(key)
}

// use puts a digest in, or notes that it is in use.
func (r *recent) use(key uint64) {
	if r.fresh(key) {
		return
	}
	if len(r.newer) >= r.most {
		r.earlier, r.newer = r.newer, make(map[uint64]struct{})
	}
	r.newer[key] = struct{}{}
}

func (r *recent) remove(key uint64) {
	delete(r.newer, key)
	delete(r.earlier, key)
}
