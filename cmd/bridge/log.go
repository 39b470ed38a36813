package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/mcpbridge/bridge/config"
)

// newLogger makes the logger of the process: for people on a terminal, for
// machines elsewhere, unless the configuration decides.
func newLogger(w io.Writer, cfg config.Log, environ []string) zerolog.Logger {
	level, err := zerolog.ParseLevel(cfg.Level)
	if err != nil {
		level = zerolog.InfoLevel // Validate lets no other name through
	}
	console := cfg.Format == "console" || cfg.Format == "auto" && isTerminal(w)
	if console {
		plain := variable(environ, "NO_COLOR") != "" || !isTerminal(w)
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: plain}
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
