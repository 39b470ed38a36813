package store

import "context"

// Glancer is a Store that can tell what it has of a session without reading it all, which may be a hundred megabytes.
type Glancer interface {
	// Glance is Store.Load without the values.
	Glance(ctx context.Context, session string) ([]Record, error)
}

// Glance returns the records that a store has of a session, without their values where it can.
func Glance(ctx context.Context, s Store, session string) ([]Record, error) {
	if g, ok := s.(Glancer); ok {
		return g.Glance(ctx, session)
	}
	return s.Load(ctx, session)
}

// Glance implements Glancer.
func (s *Sealed) Glance(ctx context.Context, session string) ([]Record, error) {
	return Glance(ctx, s.Store, session)
}

// Glance implements Glancer.
func (m *Monitored) Glance(ctx context.Context, session string) (list []Record, err error) {
	err = m.guard(func() error { list, err = Glance(ctx, m.Store, session); return err })
	return list, err
}
