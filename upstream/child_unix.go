//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child lead its own process group, so that a Ctrl-C at the
// terminal does not reach it before the orderly shutdown does, and so that its
// children end with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
