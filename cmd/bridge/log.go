package main

import (
	"io"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/logfield"
)

// Durations are logged as they are written in the configuration, with their unit.
func init() { zerolog.DurationFieldFormat = zerolog.DurationFormatString }

// newLogger makes the logger of the process: for people on a terminal, for
// machines elsewhere, unless the configuration decides.
func newLogger(w io.Writer, cfg config.Log, environ []string) zerolog.Logger {
	setLevel(cfg.Level)
	console := cfg.Format == "console" || cfg.Format == "auto" && isTerminal(w)
	plain := !colourful(w, environ)
	logger := func(w io.Writer) zerolog.Logger {
		if console {
			w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: plain}
		}
		return zerolog.New(zerolog.SyncWriter(w)).With().Timestamp().Logger()
	}
	if o, ok := w.(*output); ok {
		own := logger(o.Writer)
		o.own.Store(&own)
	}
	return logfield.Rated(logger(w))
}

// setLevel decides what is logged from now on. It holds for the whole process:
// the one level of zerolog that can change while loggers are in use.
func setLevel(name string) {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.InfoLevel // Validate lets no other name through
	}
	zerolog.SetGlobalLevel(level)
}

func isTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// colourful reports whether stream shows colours and its user wants them.
func colourful(stream any, environ []string) bool {
	return isTerminal(stream) && variable(environ, "NO_COLOR") == "" && variable(environ, "TERM") != "dumb"
}
