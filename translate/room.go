package translate

import "runtime"

// Held is told how much memory the translation of a payload takes besides the payload, in bytes: more
// when it is about to, less when it no longer does. Its error says that there is not so much. It is
// not told of what is small.
type Held interface {
	Set(bytes int) error
}

// Grew tells r.Held of a result that was translated before, and is longer by so many bytes than what it was made of.
func (r *Rules) Grew(bytes int) error {
	if r.Held == nil || bytes <= maxPooled {
		return nil
	}
	return r.Held.Set(bytes)
}

// maxPooled bounds the memory, in bytes, that a walker may keep when it goes back to the pool, and of which
// nobody is told.
const maxPooled = 256 << 10

// turns are for large payloads, of which no more are gone over at once than there are processors: were there
// more, each would have the others refused, and all would have been gone over for nothing.
var turns = make(chan struct{}, runtime.GOMAXPROCS(0))

// What one of them takes, in bytes.
const (
	editSize = 4 * 8
	dropSize = 5 * 8
	refSize  = 2 * 8
)

// size is how much memory the walker has.
func (w *walker) size() int {
	return editSize*cap(w.edits) + dropSize*cap(w.drops) + refSize*cap(w.refs) + cap(w.text) + w.lent
}

// grants reports whether the walker may have so many bytes more. Once it may not, the payload is
// unusable, and nothing more is collected.
func (w *walker) grants(bytes int) bool {
	if w.rules.Held == nil {
		return true
	}
	size := w.size() + bytes
	if size <= maxPooled && !w.told {
		return true
	}
	if !w.turn {
		turns <- struct{}{}
		w.turn = true
	}
	err := w.rules.Held.Set(size)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.told = w.told || err == nil
	return w.err == nil
}

// settle ends what grants began: what the caller has got is held on.
func (w *walker) settle() {
	if w.err != nil {
		w.lent = 0
	}
	if w.told {
		_ = w.rules.Held.Set(w.lent)
	}
	if w.turn {
		<-turns
	}
}

// lend takes so many bytes for a moment, and reports whether it may. Negative, it gives them back.
func (w *walker) lend(bytes int) bool {
	if bytes > 0 && !w.grants(bytes) {
		return false
	}
	w.lent += bytes
	return true
}

// needs makes room for so many bytes of text, and reports whether it could.
func (w *walker) needs(bytes int) (ok bool) {
	w.text, ok = room(w, w.text, bytes, 1)
	return ok
}

// room makes room for n more elements of this size, and reports whether it could: without, nothing is added.
func room[T any](w *walker, s []T, n, size int) ([]T, bool) {
	if len(s)+n <= cap(s) {
		return s, true
	}
	more := max(len(s)+n, larger(cap(s)))
	if !w.grants(more * size) {
		return s, false
	}
	return append(make([]T, 0, more), s...), true
}

// larger returns the next capacity: of a large one not twice as much, most of which would stay unused.
func larger(n int) int {
	if n < maxPooled {
		return max(2*n, 8)
	}
	return n + n/4
}
