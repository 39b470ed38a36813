package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/rs/zerolog"
)

// environment returns what a process starts from.
func (o *Options) environment() []string {
	if o.Environ == nil {
		return os.Environ()
	}
	return slices.Clone(o.Environ)
}

// name is the command as it may be shown: its arguments may hold secrets.
func (o *Options) name() string { return fault.Clip(filepath.Base(o.Command)) }

func (o *Options) startFailure(err error) *upstream.Failure {
	return &upstream.Failure{Cause: upstream.Unreachable, Err: err,
		Detail: fmt.Sprintf("the upstream command %s cannot be started: %s", o.name(), startReason(err))}
}

func startReason(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "there is no such program (is it installed and in PATH?)"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be executed"
	}
	return fault.Clip(err.Error())
}

// Options configures New. Zero values mean the defaults.
type Options struct {
	Command string
	Args    []string
	// Dir is the working directory; empty means the bridge's own.
	Dir string
	// Environ is the environment, as "KEY=value"; nil: the bridge's own.
	Environ []string
	// Env is added to it.
	Env []string
	// MaxLine bounds one message, in bytes.
	MaxLine int
	// Grace is given to a child after its stdin was closed, and again after
	// SIGTERM.
	Grace time.Duration
	// MinBackoff and MaxBackoff bound the delay between starts.
	MinBackoff, MaxBackoff time.Duration
	// Sole says that the process has one client: what names neither a request nor a
	// subscription is handed to the one request under way (C-9). From a process that
	// clients share, such a message could be about anybody's, and nobody gets it.
	Sole bool
	// Start is how long a child may take to its first answer, if that is longer than Ping.
	Start time.Duration
	// Modern says that the command has answered server/discover before: its processes are asked that first, and given
	// nothing else until they have answered.
	Modern bool
	// Ping is how long a child may be silent before it is asked whether it lives,
	// and how long it may then leave that unanswered.
	Ping time.Duration
	// Fallback admits servers that do not offer 2026-07-28; nil: none.
	Fallback upstream.Fallback
	// Account is charged with what is held for no call in particular, the line that is being read
	// above all; nil: nothing is.
	Account *budget.Account
	// Tail remembers the last lines of its standard error; nil: nobody does, unless Tell is set.
	Tail *Tail
	// Tell says that who calls may read these lines when the process ends under a call: where that is the
	// user who runs the command. Others are told the exit status alone.
	Tell bool
	Log  zerolog.Logger
}
