package store

import (
	"context"
	"errors"
	"fmt"
)

// Findings are what Verify has seen of a sealed store.
type Findings struct {
	Records int // that were looked at
	Foreign int // that none of the keys opens
	Newer   int // that a newer version of the bridge wrote
	Older   int // that only another key than the first opens
}

// verifyBatch is how many records are asked for at once.
const verifyBatch = 100

// Verify looks at about so many records of a sealed store, whether its keys open them. The
// error is that of the store, or says that the keys open nothing of what is there.
func Verify(ctx context.Context, s Store, most int) (f Findings, err error) {
	for after, more := "", true; more && f.Records < most; {
		page, err := s.List(ctx, after, verifyBatch)
		if err != nil {
			return f, err
		}
		last := ""
		for i := range page.Records {
			session := page.Records[i].Session
			if session == last || f.Records >= most {
				continue
			}
			last = session
			records, err := s.Load(ctx, session)
			if err != nil {
				return f, err
			}
			f.count(records)
		}
		after, more = page.Next, page.Next != ""
	}
	if f.Records > 0 && f.Foreign == f.Records {
		return f, fmt.Errorf("%w: the keys open none of the %d records that were looked at", ErrForeign, f.Records)
	}
	return f, nil
}

func (f *Findings) count(records []Record) {
	for i := range records {
		f.Records++
		switch {
		case errors.Is(records[i].Err, ErrForeign):
			f.Foreign++
		case errors.Is(records[i].Err, ErrNewer):
			f.Newer++
		case records[i].Older:
			f.Older++
		}
	}
}
