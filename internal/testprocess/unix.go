//go:build unix

package testprocess

import (
	"errors"
	"fmt"
	"syscall"
)

// What stops a process and lets it go on.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)

// Send sends a signal to a process.
func Send(pid int, signal syscall.Signal) error { return syscall.Kill(pid, signal) }

// Gone reports whether there is no such process.
func Gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Freeze stops a child of this process, and waits until all its threads have stopped.
func Freeze(pid int) error {
	if err := syscall.Kill(pid, Stop); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("process %d has not stopped: %w", pid, err)
	}
	return nil
}

// Join has this process leave its group for that of another one.
func Join(pid int) error {
	group, err := syscall.Getpgid(pid)
	if err != nil {
		return err
	}
	return syscall.Setpgid(0, group)
}
