//go:build !unix

package upstream

import "os/exec"

func ownGroup(*exec.Cmd) {}

// terminate does nothing: there is no gentle signal here.
func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
