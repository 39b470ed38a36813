package mrtr

import (
	"cmp"
	"time"
)

// maxRequestsPerRound bounds what one round may put to a client: no person
// answers more, and each costs a registered server request.
const maxRequestsPerRound = 64

// maxWaitingAnswers bounds what the answers of one round may be in all while others are still
// to come, in bytes: a flow that is kept is written anew with each of them. One alone may be
// as large as a message, and so may the last one.
const maxWaitingAnswers = 4 << 20

// Limits bounds one flow in rounds, bytes and time, so that the loop always ends
// (D-I18). The zero value of a field means its default.
type Limits struct {
	Rounds    int `json:"rounds"`    // retries of one request; default 20
	StateOnly int `json:"stateOnly"` // of those, rounds without input requests; default 10
	State     int `json:"state"`     // bytes of requestState; default 1 MiB

	Call          time.Duration `json:"call"`          // a whole call with all its rounds; default 30 min
	Round         time.Duration `json:"round"`         // one upstream request without progress; default 120 s
	ServerRequest time.Duration `json:"serverRequest"` // wait for a client's answer; default 10 min
	Heartbeat     time.Duration `json:"heartbeat"`     // progress while the client decides; default 15 s
	Grace         time.Duration `json:"grace"`         // work for a client that has no way back (E-23); default 1 min
}

// Defaults of Limits (D.3).
const (
	DefaultRounds        = 20
	DefaultStateOnly     = 10
	DefaultState         = 1 << 20
	DefaultCall          = 30 * time.Minute
	DefaultRound         = 120 * time.Second
	DefaultServerRequest = 10 * time.Minute
	DefaultHeartbeat     = 15 * time.Second
	DefaultGrace         = time.Minute
)

// WithDefaults fills unset fields.
func (l Limits) WithDefaults() Limits {
	l.Rounds = cmp.Or(l.Rounds, DefaultRounds)
	l.StateOnly = cmp.Or(l.StateOnly, DefaultStateOnly)
	l.State = cmp.Or(l.State, DefaultState)
	l.Call = cmp.Or(l.Call, DefaultCall)
	l.Round = cmp.Or(l.Round, DefaultRound)
	l.ServerRequest = cmp.Or(l.ServerRequest, DefaultServerRequest)
	l.Heartbeat = cmp.Or(l.Heartbeat, DefaultHeartbeat)
	l.Grace = cmp.Or(l.Grace, DefaultGrace)
	return l
}

var defaults = Limits{}.WithDefaults()

// Back-off of state-only rounds (D-T5, D-16), of repeated URL questions (C-31), and
// of a retry that cannot reach the server (D-15).
const (
	stateOnlyFirst = 250 * time.Millisecond
	stateOnlyMost  = 5 * time.Second
	urlFirst       = time.Second
	urlMost        = 15 * time.Second
	urlRepeats     = 3
	outageFirst    = 100 * time.Millisecond
	outageMost     = 5 * time.Second
)

// backoff doubles first n times, up to most.
func backoff(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
