package subscriptions

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// listener keeps one subscriptions/listen open for as long as its context
// lives: it opens it again with back-off and reports the gap (C-19, C-20).
type listener struct {
	hub   *Hub
	call  *upstream.Call // without credentials
	with  *credentials
	held  budget.Hold                  // of what is read; of the principal's own account
	acked func(filter []byte)          // the acknowledged filter, each time; may be nil
	event func(jsonrpc.Message)        // what was announced
	gap   func()                       // after a listen was acknowledged that is not the first try
	ended func(err error) (again bool) // decides about an end; nil: always again
	since time.Time                    // when this one was acknowledged; zero: it was not
}

// How long a listen waits before it is opened again: from firstPause, twice as long
// each time, up to longestPause, and from firstPause again after one that has lasted. When a
// server that failed shows that it is there, a tenth of that is enough; one that acknowledged
// the listen, and ended it, was there all the time. A server that refuses is asked a quarter
// as often; newer credentials, where it refused those, are reason to ask it again as well.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	lasting      = 5 * time.Second
	refusedPause = 4  // times as long
	alivePause   = 10 // times as short
)

// pauses are those of one listen, before they are made longer or shorter.
func pauses() *backoff.ExponentialBackOff {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = firstPause, longestPause, 2
	return wait
}

// run opens it with these credentials at first.
func (l *listener) run(ctx context.Context, authorization string) {
	l.call.Held, l.call.Account = &l.held, l.held.Account()
	wait := pauses()
	l.hub.running.Add(1)
	defer l.hub.running.Add(-1)
	again, opened := false, false // tried, and acknowledged before
	for {
		call := *l.call
		call.Authorization = authorization
		l.since = time.Time{}
		err := l.hub.opt.Upstream.Listen(ctx, &call, func(msg jsonrpc.Message) {
			if msg.Method != mcp.NotificationAcknowledged {
				l.event(msg)
				return
			}
			l.since = time.Now()
			l.acknowledged(rawjson.Get(msg.Params, "notifications"), again, opened)
			opened = true
		})
		l.held.Release()
		// ended first: whoever waits for the first acknowledgment must hear.
		if again = l.ended == nil || l.ended(err); !again || ctx.Err() != nil {
			return
		}
		if !l.since.IsZero() && time.Since(l.since) >= lasting {
			wait.Reset()
		}
		if !l.pause(ctx, err, authorization, wait.NextBackOff()) {
			return
		}
		authorization = l.with.newest()
	}
}

// acknowledged tells of an acknowledgment. Where it had to be tried again there is a gap before it, also before the
// first: clients use what the server has said meanwhile.
func (l *listener) acknowledged(filter []byte, again, opened bool) {
	if l.acked != nil {
		l.acked(filter)
	}
	if !again {
		return
	}
	if opened {
		l.logAgain()
	}
	l.hub.Alive()
	l.gap()
}

func (l *listener) logAgain() {
	if missed, ok := l.hub.again.due(); ok {
		l.hub.opt.Log.Info().Int("before", missed).Msg("a subscription at the server is open again")
	}
}

// logEnd says that a subscription ended, and how many have since the last line.
func (l *listener) logEnd(err error, pause time.Duration) {
	missed, ok := l.hub.ended.due()
	if !ok {
		return
	}
	event := l.hub.opt.Log.Info() // the server ended it in order
	if err != nil {
		event = l.hub.opt.Log.Warn().Err(err)
	}
	event.Dur("again_in", pause).Int("before", missed).Msg("a subscription at the server ended; it is opened again")
}

// pause waits before a listen with these credentials that ended with err is opened again.
// It returns false when ctx ended first.
func (l *listener) pause(ctx context.Context, err error, authorization string, d time.Duration) bool {
	l.hub.pausing.Add(1)
	defer l.hub.pausing.Add(-1)
	failed, failure := errors.AsType[*upstream.Failure](err)
	if failure && failed.Cause == upstream.Unauthorized {
		fresh, done := l.with.refused(authorization)
		defer done()
		l.logEnd(err, d*refusedPause)
		least := d / alivePause
		return sleep(ctx, least, nil) && sleep(ctx, d*refusedPause-least, fresh)
	}
	if refused := (*jsonrpc.Error)(nil); errors.As(err, &refused) {
		l.logEnd(err, d*refusedPause)
		return sleep(ctx, d*refusedPause, nil)
	}
	l.logEnd(err, d)
	alive, done := l.hub.alive.wait()
	defer done()
	least := d
	if failure && l.since.IsZero() {
		least = d / alivePause
	}
	return sleep(ctx, least, nil) && sleep(ctx, d-least, alive)
}

// sleep returns false when ctx ended first. enough, which may be nil, ends it early.
func sleep(ctx context.Context, d time.Duration, enough <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-enough:
		return true
	case <-ctx.Done():
		return false
	}
}
