//go:build unix && !linux

package stdio

import "syscall"

// endWithParent does nothing: here a process only notices the end of its input.
func endWithParent(*syscall.SysProcAttr) {}
