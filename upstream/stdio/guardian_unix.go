//go:build unix

package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// guardian is a process in the group of a command that ends the whole group when the
// bridge is gone, however that ended: the kernel may kill the command itself
// (endWithParent), but nobody would end what the command has started. While it is there,
// the group's number is nobody else's.
type guardian struct {
	cmd  *exec.Cmd
	hold *os.File // our end of its input, which ends with us
}

// watch waits for the end of its input, whatever is sent to the group meanwhile.
const watch = `trap '' HUP INT TERM; read -r _; kill -KILL 0`

// guard starts a guardian for the group that a command leads. Where there is no shell, or
// no such group any more, there is none.
func guard(command *exec.Cmd) *guardian {
	in, hold, err := os.Pipe()
	if err != nil {
		return nil
	}
	cmd := exec.Command("/bin/sh", "-c", watch)
	cmd.Env, cmd.Dir, cmd.Stdin = []string{}, "/", in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: command.Process.Pid}
	err = cmd.Start()
	_ = in.Close()
	if err != nil {
		_ = hold.Close()
		return nil
	}
	started.add(cmd.Process.Pid)
	return &guardian{cmd, hold}
}

// dismiss ends the guardian before it does anything, and waits for that.
func (g *guardian) dismiss() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait() // it was killed
	started.remove(g.cmd.Process.Pid)
	_ = g.hold.Close()
}
