package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// onlyReading counts what only reads, and has nothing to end in order.
var onlyReading atomic.Int32

// reading is read, during which the first signal ends the process at once: a pipe or a mount whose server is gone may
// never be read to its end.
func reading[T any](read func() (T, error)) (T, error) {
	onlyReading.Add(1)
	defer onlyReading.Add(-1)
	return read()
}

// catchHangUp returns where SIGHUP goes from the beginning of a command that may obey it: one that comes before it can is kept for it, and
// does not end it. nil for other commands.
func catchHangUp(args []string) chan os.Signal {
	if len(args) == 0 || args[0] != "serve" {
		return nil
	}
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	return hangUp
}

// obeysHangUp returns where SIGHUP goes while a command runs that obeys it, or does not: then it has its usual effect, be it one that
// was caught before.
func obeysHangUp(caught chan os.Signal, obeys bool) chan os.Signal {
	if caught == nil {
		caught = make(chan os.Signal, 1)
	}
	if obeys {
		signal.Notify(caught, syscall.SIGHUP)
		return caught
	}
	signal.Stop(caught)
	select {
	case early := <-caught:
		raise(early)
	default:
	}
	return caught
}

// raise sends the process a signal that nobody catches any more.
func raise(what os.Signal) {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(what)
	}
}

// untilSignal returns a context that the first signal ends, which asks for an orderly end. The second one ends the
// process, as if nobody had asked for them.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		signal.Stop(signals)
		if onlyReading.Load() > 0 {
			raise(first)
		}
		cancel()
	}()
	return ctx
}
