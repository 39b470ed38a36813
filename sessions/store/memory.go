package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Memory keeps records in memory, of a bounded number of sessions: the one that was
// used least recently makes room. It is what other engines are measured by.
type Memory struct {
	mu       sync.Mutex
	closed   bool
	sessions *simplelru.LRU[string, records]
}

// records are those of one session.
type records map[recordKey]*entry

type recordKey struct {
	kind Kind
	id   string
}

type entry struct {
	version uint64
	until   time.Time
	value   []byte
}

// NewMemory returns an empty store for at most this many sessions, at least one.
func NewMemory(sessions int) *Memory {
	lru, _ := simplelru.NewLRU[string, records](max(sessions, 1), nil) // the only error is a size below 1
	return &Memory{sessions: lru}
}

// Commit implements Store.
func (m *Memory) Commit(ctx context.Context, session string, changes ...Change) error {
	if err := Check(session, changes); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return err
	}
	all, now := m.liveLocked(session), time.Now()
	for _, c := range changes {
		if version := all[recordKey{c.Kind, c.ID}].versionOf(); c.Replaces != Any && c.Replaces != version {
			return &ConflictError{Address{session, c.Kind, c.ID}}
		}
	}
	for _, c := range changes {
		key := recordKey{c.Kind, c.ID}
		if c.Delete {
			delete(all, key)
			continue
		}
		all[key] = &entry{version: all[key].versionOf() + 1, until: now.Add(c.TTL), value: slices.Clone(c.Value)}
	}
	all.outlive(slices.ContainsFunc(changes, func(c Change) bool { return c.WithCalls }))
	m.putLocked(session, all)
	return nil
}

// outlive has the session's own record live as long as the others, if that is asked for.
func (all records) outlive(withCalls bool) {
	own := all[recordKey{kind: Session}]
	if !withCalls || own == nil {
		return
	}
	for _, k := range all {
		if k.until.After(own.until) {
			own.until = k.until
		}
	}
}

func (k *entry) versionOf() uint64 {
	if k == nil {
		return 0
	}
	return k.version
}

// liveLocked returns a session's records, without those that have expired.
func (m *Memory) liveLocked(session string) records {
	all, ok := m.sessions.Get(session)
	if !ok {
		return records{}
	}
	now := time.Now()
	for key, k := range all {
		if !k.until.After(now) {
			delete(all, key)
		}
	}
	return all
}

func (m *Memory) putLocked(session string, all records) {
	if len(all) == 0 {
		m.sessions.Remove(session)
		return
	}
	m.sessions.Add(session, all)
}

func (m *Memory) usableLocked(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, at Address) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return Record{}, err
	}
	k := m.liveLocked(at.Session)[recordKey{at.Kind, at.ID}]
	if k == nil {
		return Record{}, ErrNotFound
	}
	return k.record(at), nil
}

func (k *entry) record(at Address) Record {
	return Record{Address: at, Version: k.version, TTL: time.Until(k.until), Value: k.value}
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, session string) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return nil, err
	}
	return m.loadLocked(session), nil
}

func (m *Memory) loadLocked(session string) []Record {
	var list []Record
	for key, k := range m.liveLocked(session) {
		list = append(list, k.record(Address{session, key.kind, key.id}))
	}
	slices.SortFunc(list, func(a, b Record) int { return a.Address.Compare(b.Address) })
	return list
}

// Compare orders addresses by session, kind and id.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// Touch implements Store.
func (m *Memory) Touch(ctx context.Context, touches ...Touch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return err
	}
	for _, touch := range touches {
		all := m.liveLocked(touch.Session)
		if k := all[recordKey{kind: Session}]; k != nil {
			k.until = time.Now().Add(touch.TTL)
			all.outlive(touch.WithCalls)
		}
	}
	return nil
}

// End implements Store.
func (m *Memory) End(ctx context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return err
	}
	m.sessions.Remove(session)
	return nil
}

// List implements Store. Listing sorts all names: it is for people, not for every day.
func (m *Memory) List(ctx context.Context, after string, limit int) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return Page{}, err
	}
	names := m.sessions.Keys()
	slices.Sort(names)
	first, found := slices.BinarySearch(names, after)
	if found {
		first++
	}
	var page Page
	for _, name := range names[first:] {
		if len(page.Records) >= limit {
			return page, nil
		}
		for _, r := range m.loadLocked(name) {
			r.Value = nil
			page.Records = append(page.Records, r)
		}
		page.Next = name
	}
	page.Next = ""
	return page, nil
}

// Watch implements Store.
func (m *Memory) Watch(func(string)) bool { return false }

// Ping implements Store.
func (m *Memory) Ping(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usableLocked(ctx)
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.sessions.Purge()
	return nil
}
