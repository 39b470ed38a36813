package mrtr

import (
	"cmp"
	"time"
)

// maxRequestsPerRound bounds what one round may put to a client: no person
// answers more, and each costs a registered server request.
const maxRequestsPerRound = 64

// Limits bounds one flow, so that the loop always ends (D-I18). The zero value
// of a field means its default.
type Limits struct {
	Rounds    int // retries of one request; default 20
	StateOnly int // of those, rounds without input requests; default 10
	State     int // bytes of requestState; default 1 MiB
}

// Defaults of Limits (D.3).
const (
	DefaultRounds    = 20
	DefaultStateOnly = 10
	DefaultState     = 1 << 20
)

// WithDefaults fills unset fields.
func (l Limits) WithDefaults() Limits {
	l.Rounds = cmp.Or(l.Rounds, DefaultRounds)
	l.StateOnly = cmp.Or(l.StateOnly, DefaultStateOnly)
	l.State = cmp.Or(l.State, DefaultState)
	return l
}

// Back-off of state-only rounds (D-T5, D-16) and of repeated URL questions (C-31).
const (
	stateOnlyFirst = 250 * time.Millisecond
	stateOnlyMost  = 5 * time.Second
	urlFirst       = time.Second
	urlMost        = 15 * time.Second
	urlRepeats     = 3
)

// backoff doubles first n times, up to most.
func backoff(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
