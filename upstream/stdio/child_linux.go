package stdio

import "syscall"

// endWithParent has the kernel kill the process when the thread that started it
// ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
