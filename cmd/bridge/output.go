package main

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// output is the standard error of the process: a line that is written there waits for nobody. Whoever reads the log may have stopped,
// as a client does that starts the bridge and leaves its standard error alone; every request would wait with a line of its own then.
// Up to mostHeld bytes wait to be read, what is more is left out, and how many lines that were is said as soon as somebody reads again.
//
// zerolog's own diode bounds lines and not bytes, and either wakes up a hundred times a second or misses that there is a line; and its end
// waits for the reader.
type output struct {
	io.Writer
	own     atomic.Pointer[zerolog.Logger] // says what was left out, past what waits; nil: there is no log yet
	lines   chan []byte                    // nil: what was there before it is flushed
	held    atomic.Int64
	lost    atomic.Uint64
	flushed chan struct{}
}

const (
	mostHeld  = 1 << 20 // bytes
	mostLines = 4096
	// lastLines is how long the end of the process waits for what was written.
	lastLines = time.Second
)

func newOutput(to io.Writer) *output {
	o := &output{Writer: to, lines: make(chan []byte, mostLines), flushed: make(chan struct{}, 1)}
	go o.pump()
	return o
}

// Fd implements what tells a terminal.
func (o *output) Fd() uintptr {
	if file, ok := o.Writer.(*os.File); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// Write implements io.Writer.
func (o *output) Write(line []byte) (int, error) {
	size := int64(len(line))
	if o.held.Add(size) > mostHeld {
		o.leaveOut(size)
		return len(line), nil
	}
	select {
	case o.lines <- bytes.Clone(line):
	default:
		o.leaveOut(size)
	}
	return len(line), nil
}

func (o *output) leaveOut(size int64) {
	o.held.Add(-size)
	o.lost.Add(1)
}

func (o *output) pump() {
	for line := range o.lines {
		if line == nil {
			o.flushed <- struct{}{}
			continue
		}
		_, _ = o.Writer.Write(line) // who reads it may be gone
		o.held.Add(-int64(len(line)))
		if own := o.own.Load(); own != nil && o.lost.Load() > 0 {
			own.Warn().Uint64("lines", o.lost.Swap(0)).Msg("the log was not read as fast as it was written: lines were left out")
		}
	}
}

// flush waits until all is written that came before, but not for long.
func (o *output) flush() {
	late := time.NewTimer(lastLines)
	defer late.Stop()
	select {
	case o.lines <- nil:
	case <-late.C:
		return
	}
	select {
	case <-o.flushed:
	case <-late.C:
	}
}

// outliveReaders has a write to a client or a reader of the log that is gone be an error, and no longer the end of the process, which has
// sessions and children to end first. It takes a handler for SIGPIPE: ignoring the signal would do the same to the children.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
