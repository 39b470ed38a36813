package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// environment returns what a process starts from.
func (o *StdioOptions) environment() []string {
	if o.Environ == nil {
		return os.Environ()
	}
	return slices.Clone(o.Environ)
}

// name is the command as it may be shown: its arguments may hold secrets.
func (o *StdioOptions) name() string { return clip(filepath.Base(o.Command)) }

func (o *StdioOptions) startFailure(err error) *Failure {
	return &Failure{Cause: Unreachable, Err: err,
		Detail: fmt.Sprintf("the upstream command %s cannot be started: %s", o.name(), startReason(err))}
}

func startReason(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "there is no such program (is it installed and in PATH?)"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be executed"
	}
	return clip(err.Error())
}
