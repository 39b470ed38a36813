package stream

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// Options bounds and tunes the streams of an endpoint. All but NoPark, Poll and Watch are needed.
type Options struct {
	Log        sessions.Limits
	MaxStreams int // ended and delivered streams kept per session for resume
	MaxOwed    int // ended streams kept per session that nobody has fetched; visitors', and what is in a store, apart
	MaxPending int // messages kept per session while nobody listens

	KeepAlive    time.Duration // longest silence
	Retention    time.Duration // how long an ended stream can be resumed (E-20)
	WriteTimeout time.Duration // how long a client may block one write
	ParkAfter    time.Duration // a stream that is quiet for this long gives its goroutine up
	NoPark       bool          // every stream keeps its goroutine
	Poll         time.Duration // after which clients that know of that are to come again (E-8); 0: never
	PollPause    time.Duration // how long they are to stay away

	Gate   *gate.Gate      // of the endpoint; shut, it ends the streams of GET
	Watch  observe.Watcher // nil: nobody is told
	Logger zerolog.Logger
	Slow   zerolog.Logger // for lines about clients that read too slowly
}

// Endpoint is what the streams of all sessions of an endpoint share. Its owner calls
// Run. The methods are safe for concurrent use.
type Endpoint struct {
	opt       Options
	beats     *agenda.Agenda // responses that may need a keep-alive
	retention *agenda.Agenda // ended streams that can still be resumed (E-20)
	quiet     *quiet.Conns   // responses that no goroutine serves
	attended  atomic.Int32   // responses that have one
	gaps      zerolog.Logger // says that events are missing
	dropped   zerolog.Logger // says that messages are
	lost      zerolog.Logger // says that answers are
	crowded   chan struct{}  // gets a value when those begin to be a crowd
}

// NewEndpoint returns an endpoint without streams. Close ends its connections.
func NewEndpoint(opt Options) *Endpoint {
	return &Endpoint{
		opt: opt,
		// Looking three times per interval and speaking after two thirds of
		// it keeps the silence below the interval.
		beats:     agenda.New(min(opt.KeepAlive/3, opt.ParkAfter)),
		retention: agenda.New(opt.Retention),
		quiet:     quiet.New(quiet.Options{Off: opt.NoPark, KeepAlive: opt.KeepAlive, WriteTimeout: opt.WriteTimeout, Gate: opt.Gate}),
		crowded:   make(chan struct{}, 1),
		gaps:      logfield.Seldom(opt.Logger),
		dropped:   logfield.Seldom(opt.Logger),
		lost:      logfield.Seldom(opt.Logger),
	}
}

// Run looks after everything that is due, and returns how long it may be until it should
// run again, unless Crowded has a value before.
func (e *Endpoint) Run() time.Duration {
	return min(e.beats.Run(e.ahead()), e.retention.Run(0), e.quiet.Run())
}

// Crowded has a value when Run should run at once.
func (e *Endpoint) Crowded() <-chan struct{} { return e.crowded }

// EndListeners ends the streams that belong to no call and have no goroutine; the
// others end as the gate shuts.
func (e *Endpoint) EndListeners() { e.quiet.EndListeners() }

// Close cuts the connections that no goroutine serves. None is taken in afterwards.
func (e *Endpoint) Close() { e.quiet.Close() }

// Parked returns how many responses have no goroutine, and how many connections wait
// for another request after one. It costs as much as there are.
func (e *Endpoint) Parked() (responses, idle int) { return e.quiet.Count() }

// Crowd is how many streams may have a goroutine before quiet ones are parked
// sooner. What a rush leaves behind in the runtime is never given back, and
// objects that live long between the many that don't keep their pages.
const Crowd = 200

// crowdRest is the part of Options.ParkAfter after which streams of a crowd are parked.
const crowdRest = 10

// rest is how long a stream must be quiet now to be parked.
func (e *Endpoint) rest() time.Duration {
	if e.attended.Load() > Crowd {
		return e.opt.ParkAfter / crowdRest
	}
	return e.opt.ParkAfter
}

// ahead is how much earlier than usual streams are looked at now.
func (e *Endpoint) ahead() time.Duration {
	if e.attended.Load() > Crowd {
		return e.beats.Delay() - e.beats.Delay()/crowdRest
	}
	return 0
}

// attend counts a response that has a goroutine.
func (e *Endpoint) attend() {
	if e.attended.Add(1) == Crowd+1 {
		select {
		case e.crowded <- struct{}{}:
		default:
		}
	}
}

// letGo logs that a response was let go since its client does not read. set is nil for
// a stream without a session, the rest of which is lost.
func (e *Endpoint) letGo(set *Set, st *sessions.Stream, why error) {
	if !errors.Is(why, sessions.ErrLagging) && !errors.Is(why, quiet.ErrSlow) && !errors.Is(why, os.ErrDeadlineExceeded) {
		return
	}
	line := e.opt.Slow.Warn().Uint64(logfield.StreamID, st.ID()).Str(logfield.Cause, why.Error()).Bool("resumable", set != nil)
	if set != nil {
		line = line.Str(logfield.SessionID, logfield.Short(set.session.ID))
	}
	line.Msg("a client reads too slowly; its connection was let go")
}

// resumed tells who watches what a client got that came back for the rest of a stream.
func (e *Endpoint) resumed(r observe.Resumption) {
	if e.opt.Watch != nil {
		e.opt.Watch.Resumed(r)
	}
}

// limits returns those of a stream that is charged to account.
func (e *Endpoint) limits(account *budget.Account) sessions.Limits {
	l := e.opt.Log
	l.Account = account
	return l
}
