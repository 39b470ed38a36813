// Command bridge connects MCP clients of the older revisions to servers that
// speak only the newest one.
//
// It owns what a process owns: the command line, the configuration's way into
// the packages, logging, signals, listeners and the order of starting and
// stopping. What the bridge does with a message is decided elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"os"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// surroundings are what a process is given besides its arguments; tests give
// their own.
type surroundings struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	// started is called with the address of each listener as it begins to accept; nil: nobody waits for that.
	started func(address string)
	hangUp  chan os.Signal // catchHangUp
}

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2 // the command line or the configuration is wrong
)

func main() {
	stdlog.SetOutput(io.Discard) // net/http quotes responses there that came too late
	stderr := newOutput(os.Stderr)
	env := surroundings{in: os.Stdin, out: os.Stdout, err: stderr, environ: os.Environ(), hangUp: catchHangUp(os.Args[1:])}
	ctx := untilSignal()
	if os.Getpid() == 1 {
		go stdio.ReapOrphans(context.WithoutCancel(ctx))
	}
	err := run(ctx, os.Args[1:], env)
	if err != nil {
		fmt.Fprintf(stderr, "bridge: %s\n", clip.Lines(err.Error())) // peers have a say in it
	}
	stderr.flush()
	if err != nil {
		os.Exit(exitCode(err))
	}
}

// run is the program. It returns when the command is done or ctx has ended and
// everything was stopped.
func run(ctx context.Context, args []string, env surroundings) error {
	root := newRoot(env)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// usageError marks an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	if _, wrong := errors.AsType[*config.Error](err); wrong {
		return exitUsage
	}
	return exitFailure
}
