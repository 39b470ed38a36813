package authorize

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
)

// hasBrowser guesses whether a browser that is opened here is one that the person
// sees.
func hasBrowser() bool {
	if os.Getenv("SSH_CONNECTION") != "" {
		return false
	}
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" || os.Getenv("WSL_DISTRO_NAME") != ""
}

// openBrowser shows a page. It does not wait for the browser, which may be a
// process that lives for days.
func openBrowser(command []string, page string) error {
	if len(command) == 0 {
		command = systemBrowser()
	}
	if len(command) == 0 {
		return errors.New("no program that opens pages was found; set auth.browser")
	}
	cmd := exec.Command(command[0], append(slices.Clone(command[1:]), page)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that no zombie is left; how it ended says nothing
	return nil
}

// systemBrowser is the system's way to open a page.
func systemBrowser() []string {
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
