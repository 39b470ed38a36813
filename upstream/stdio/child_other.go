//go:build !unix

package stdio

import "os/exec"

func ownGroup(*exec.Cmd) {}

// terminate does nothing: there is no gentle signal here.
func terminate(*exec.Cmd) bool { return false }

func kill(cmd *exec.Cmd) bool { return cmd.Process.Kill() == nil }

// groupLives is never asked: there are no groups here.
func groupLives(*exec.Cmd) bool { return false }
