// Package browser shows pages to the person at this machine.
package browser

import (
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Seen guesses whether a browser that is opened here is one that a person sees, by
// the environment of the program: there is a display, nobody came over SSH, and no
// build runs.
func Seen(environ []string) bool {
	set := func(names ...string) bool {
		return slices.ContainsFunc(environ, func(variable string) bool {
			name, value, _ := strings.Cut(variable, "=")
			return value != "" && slices.Contains(names, name)
		})
	}
	if set("SSH_CONNECTION", "CI") {
		return false
	}
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	return set("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
}

// ErrNone is returned when there is nothing to open pages with.
var ErrNone = errors.New("no program that opens pages was found")

// Open shows a page with a command, which gets the address as its last argument;
// empty: the system's browser. It does not wait for the browser, which may be a
// process that lives for days.
func Open(command []string, page string) error {
	if len(command) == 0 {
		command = system()
	}
	if len(command) == 0 {
		return ErrNone
	}
	cmd := exec.Command(command[0], append(slices.Clone(command[1:]), page)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that no zombie is left; how it ended says nothing
	return nil
}

// system is the system's way to open a page.
func system() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	for _, name := range []string{"xdg-open", "wslview", "sensible-browser", "x-www-browser"} {
		if at, err := exec.LookPath(name); err == nil {
			return []string{at}
		}
	}
	return nil
}
