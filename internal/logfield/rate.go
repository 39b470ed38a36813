package logfield

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// perMinute is how many lines of a kind are written.
const perMinute = 20

// mostKinds bounds how many kinds are told apart; what goes beyond is one kind more.
const mostKinds = 512

// Rated returns a logger that writes 20 lines a minute of each kind, at any level, so that whatever peers, stores
// or a load repeat does not fill the disk. A line's kind is its text, which is to be a constant therefore: what
// differs goes into fields. All loggers that are made of this one share its rates, but for those of AtMost, Seldom and Apart.
func Rated(log zerolog.Logger) zerolog.Logger { return Apart(log.Hook(hook{})) }

// Apart returns a rated logger with rates of its own, for what must not lose its lines to those of others.
func Apart(log zerolog.Logger) zerolog.Logger { return counted(log, &rates{}) }

// Seldom returns a logger for one kind of line, whatever its texts: 20 a minute of it are written.
func Seldom(log zerolog.Logger) zerolog.Logger { return AtMost(perMinute, log) }

// AtMost is Seldom for a number of lines of its own.
func AtMost(perMinute uint32, log zerolog.Logger) zerolog.Logger {
	return counted(log, nil).Sample(&zerolog.BurstSampler{Burst: perMinute, Period: time.Minute})
}

// Each returns a line to be written however many there are: somebody has asked for each, or they are counted already.
func Each(line *zerolog.Event) *zerolog.Event {
	if line == nil { // its level is not written
		return nil
	}
	return line.Ctx(context.WithValue(line.GetCtx(), countedBy{}, (*rates)(nil)))
}

// countedBy is the key of the rates in a line's context.
type countedBy struct{}

func counted(log zerolog.Logger, by *rates) zerolog.Logger {
	all := log.Sample(nil)
	line := all.Log() // of whose context hooks of a program that embeds the bridge may make use
	ctx := line.GetCtx()
	line.Discard()
	return log.With().Ctx(context.WithValue(ctx, countedBy{}, by)).Logger()
}

// hook discards the lines beyond their rate.
type hook struct{}

// Run implements zerolog.Hook.
func (hook) Run(line *zerolog.Event, level zerolog.Level, text string) {
	if by, _ := line.GetCtx().Value(countedBy{}).(*rates); by != nil && !by.room(kind{level, text}) {
		line.Discard()
	}
}

// kind is what lines have in common that count together.
type kind struct {
	level zerolog.Level
	text  string
}

// rates counts lines by kind, a minute at a time.
type rates struct {
	mu    sync.Mutex
	until time.Time // the end of the current minute
	lines map[kind]int
}

// room counts a line, and reports whether it is to be written.
func (r *rates) room(of kind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !now.Before(r.until) {
		r.until, r.lines = now.Add(time.Minute), map[kind]int{}
	}
	if _, known := r.lines[of]; !known && len(r.lines) >= mostKinds {
		of = kind{}
	}
	if r.lines[of] == perMinute {
		return false
	}
	r.lines[of]++
	return true
}
