//go:build unix

package stdio

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child lead its own process group, so that a Ctrl-C at the
// terminal does not reach it before the orderly shutdown does, and so that its
// children end with it. Where the system can do that it ends with the bridge,
// too, however that ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

// terminate, kill and groupLives report whether there is anybody in the group. Its
// number cannot be another's while somebody is.
func terminate(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) == nil }

// kill reaches the process in another group, too, so that nobody waits for it for ever.
func kill(cmd *exec.Cmd) bool {
	there := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil
	return cmd.Process.Kill() == nil || there
}

func groupLives(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, 0) == nil }
