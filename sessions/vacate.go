package sessions

// Close ends all sessions and refuses new ones. It is idempotent.
func (t *Table[V]) Close() {
	t.closed.Store(true)
	t.close(func(*entry[V]) bool { return true })
}

// Vacate ends the sessions that are not busy, since others serve their clients from now on. The busy ones, and
// those that are to stay for something else, are for the next time.
func (t *Table[V]) Vacate(stays func(V) bool) {
	t.close(func(e *entry[V]) bool { return !t.busy(e) && !stays(e.value) })
}

func (t *Table[V]) close(which func(*entry[V]) bool) {
	for _, shard := range t.shards {
		for _, id := range shard.ids() {
			if e, ok := shard.peek(id); ok && which(e) {
				t.end(e, Closed)
			}
		}
	}
}
