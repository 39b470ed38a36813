package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrUnreachable says that the engine could not be reached when it was last tried.
var ErrUnreachable = errors.New("the store cannot be reached")

// Monitored notices when an engine behind a network fails. From then on it asks that
// nothing but whether it is back, and fails everything else at once with ErrUnreachable:
// nobody waits for what does not come. Of one that was not over in its time, it may be behind those of others, nothing is known: it asks at once.
type Monitored struct {
	Store
	changed func(string)
	down    atomic.Bool
	say     func(up bool, why error)

	stop    context.CancelFunc
	ctx     context.Context // ends with Close
	probing sync.WaitGroup
}

const (
	probeEvery   = 250 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// NewMonitored watches over inner. say is told when it fails, and when it is back.
func NewMonitored(inner Store, say func(up bool, why error)) *Monitored {
	m := &Monitored{Store: inner, say: say, changed: func(string) {}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// Up reports whether the engine could be reached when it was last tried.
func (m *Monitored) Up() bool { return !m.down.Load() }

// guard makes an operation unless it would fail.
func (m *Monitored) guard(operation func() error) error {
	if m.down.Load() {
		return ErrUnreachable
	}
	err := operation()
	why := err
	if errors.Is(err, context.DeadlineExceeded) {
		why = m.ping()
	}
	if isFailure(why) && !m.down.Swap(true) {
		m.say(false, why)
		m.probing.Go(m.probe)
	}
	return err
}

func isFailure(err error) bool {
	_, conflict := errors.AsType[*ConflictError](err)
	return err != nil && !conflict && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled)
}

// probe waits until the engine is back. What changed meanwhile nobody has told of.
func (m *Monitored) probe() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		if m.ping() == nil {
			m.down.Store(false)
			m.say(true, nil)
			m.changed("")
			return
		}
	}
}

// ping asks whether the engine is there.
func (m *Monitored) ping() error {
	ctx, cancel := context.WithTimeout(m.ctx, probeTimeout)
	defer cancel()
	return m.Store.Ping(ctx)
}

// Commit implements Store.
func (m *Monitored) Commit(ctx context.Context, session string, changes ...Change) error {
	if err := Check(session, changes); err != nil {
		return err
	}
	return m.guard(func() error { return m.Store.Commit(ctx, session, changes...) })
}

// Get implements Store.
func (m *Monitored) Get(ctx context.Context, at Address) (r Record, err error) {
	err = m.guard(func() error { r, err = m.Store.Get(ctx, at); return err })
	return r, err
}

// Load implements Store.
func (m *Monitored) Load(ctx context.Context, session string) (list []Record, err error) {
	err = m.guard(func() error { list, err = m.Store.Load(ctx, session); return err })
	return list, err
}

// Touch implements Store.
func (m *Monitored) Touch(ctx context.Context, touches ...Touch) error {
	return m.guard(func() error { return m.Store.Touch(ctx, touches...) })
}

// End implements Store.
func (m *Monitored) End(ctx context.Context, session string) error {
	return m.guard(func() error { return m.Store.End(ctx, session) })
}

// Watch implements Store.
func (m *Monitored) Watch(changed func(session string)) bool {
	m.changed = changed
	return m.Store.Watch(changed)
}

// Close implements Store.
func (m *Monitored) Close() error {
	m.stop()
	err := m.Store.Close()
	m.probing.Wait()
	return err
}
