package sessions

// Close ends all sessions and refuses new ones. It is idempotent.
func (t *Table[V]) Close() {
	t.closed.Store(true)
	t.close(func(*entry[V]) bool { return true })
}

// Vacate ends the sessions that are not busy, since others serve their clients from now on. The busy ones
// are for the next time.
func (t *Table[V]) Vacate() { t.close(func(e *entry[V]) bool { return !t.busy(e) }) }

func (t *Table[V]) close(which func(*entry[V]) bool) {
	for _, shard := range t.shards {
		for _, id := range shard.ids() {
			if e, ok := shard.peek(id); ok && which(e) {
				t.end(e, Closed)
			}
		}
	}
}
