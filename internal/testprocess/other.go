//go:build !unix

package testprocess

import (
	"errors"
	"syscall"
)

// What would stop a process and let it go on.
const (
	Stop     = syscall.Signal(19)
	Continue = syscall.Signal(18)
)

// Send would send a signal to a process.
func Send(int, syscall.Signal) error { return errors.ErrUnsupported }

// Gone would report whether there is no such process.
func Gone(int) bool { return false }

// Freeze would stop a child of this process.
func Freeze(int) error { return errors.ErrUnsupported }

// Join would have this process leave its group.
func Join(int) error { return errors.ErrUnsupported }
