package authorize

import (
	"errors"
	"time"
)

// renewal is one endeavour to replace a token, for all who need that. It ends by itself: a
// server that rotates refresh tokens has rotated this one even if nobody waits for its answer any more.
type renewal struct {
	used  string        // the token
	done  chan struct{} // closed at the end
	login *Login        // what came of it, with what follows read after done
	err   error
	again time.Time // from when on another one may be made; of one that failed
}

// prompt is how long whoever finds that a token is about to expire waits for the next one, and
// what a renewal takes at most that may be tried again at once.
const prompt = 2 * time.Second

func (r *renewal) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// stands reports whether another one would be no use yet.
func (r *renewal) stands(used string) bool {
	return r != nil && r.used == used && (!r.over() || r.err != nil && time.Now().Before(r.again))
}

// run makes the endeavour.
func (r *renewal) run(trade func() (*Login, error)) {
	defer close(r.done)
	began := time.Now()
	r.login, r.err = trade()
	switch took := time.Since(began); {
	case errors.Is(r.err, errStillborn): // so would the next one be
		r.again = time.Now().Add(again)
	case r.err != nil && took > prompt:
		r.again = time.Now().Add(min(took, RequestTimeout))
	}
}
