package store

import (
	"cmp"
	"context"
)

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

// Sizer is a Store that can tell how large a record is without reading it.
type Sizer interface {
	// Size returns about how many bytes the value of a record has, or ErrNotFound.
	Size(ctx context.Context, at Address) (int, error)
}

// Size returns about how many bytes the value of a record has, which a store that cannot tell reads for that.
func Size(ctx context.Context, s Store, at Address) (int, error) {
	if sizer, ok := s.(Sizer); ok {
		return sizer.Size(ctx, at)
	}
	r, err := s.Get(ctx, at)
	return len(r.Value), err
}

// Size implements Sizer.
func (s *Sealed) Size(ctx context.Context, at Address) (int, error) { return Size(ctx, s.Store, at) }

// Size implements Sizer.
func (m *Monitored) Size(ctx context.Context, at Address) (size int, err error) {
	err = m.guard(func() error { size, err = Size(ctx, m.Store, at); return err })
	return size, err
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

// Freshener is a Store whose Get may answer from a copy, and that can read one record without.
type Freshener interface {
	// Fresh is Get, and never answers from a copy.
	Fresh(ctx context.Context, at Address) (Record, error)
}

// Fresh reads a record, and not from a copy, of which a store that cannot read that alone reads the whole session.
func Fresh(ctx context.Context, s Store, at Address) (Record, error) {
	if f, ok := s.(Freshener); ok {
		return f.Fresh(ctx, at)
	}
	list, err := s.Load(ctx, at.Session)
	for i := range list {
		if list[i].Address == at {
			return list[i], nil
		}
	}
	return Record{}, cmp.Or(err, ErrNotFound)
}

// Fresh implements Freshener.
func (s *Sealed) Fresh(ctx context.Context, at Address) (Record, error) {
	record, err := Fresh(ctx, s.Store, at)
	if err == nil {
		s.open(&record)
	}
	return record, err
}

// Fresh implements Freshener.
func (m *Monitored) Fresh(ctx context.Context, at Address) (r Record, err error) {
	err = m.guard(func() error { r, err = Fresh(ctx, m.Store, at); return err })
	return r, err
}
