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
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(first) // which nobody catches any more
			}
		}
		cancel()
	}()
	return ctx
}
