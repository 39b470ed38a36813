package browser

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestNobodySeesABrowserOverSSHOrInABuild(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		seen    bool
	}{
		"a display":       {[]string{"PATH=/bin", "DISPLAY=:0"}, true},
		"Wayland":         {[]string{"WAYLAND_DISPLAY=wayland-0"}, true},
		"over SSH":        {[]string{"DISPLAY=:10", "SSH_CONNECTION=192.0.2.1 1 192.0.2.2 22"}, false},
		"a build":         {[]string{"DISPLAY=:0", "CI=true"}, false},
		"an empty CI":     {[]string{"DISPLAY=:0", "CI="}, true},
		"an empty number": {[]string{"DISPLAY=", "HOME=/"}, runtime.GOOS == "darwin" || runtime.GOOS == "windows"},
	} {
		if Seen(c.environ) != c.seen {
			t.Errorf("%s: %v", name, !c.seen)
		}
	}
}

func TestCommandGetsTheAddressLast(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	file := filepath.Join(t.TempDir(), "opened")
	if err := Open([]string{"/bin/sh", "-c", `printf %s "$1 $2" > "$0.new" && mv "$0.new" "$0"`, file, "-x"}, "http://127.0.0.1/?a=1&b=$HOME"); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if text, err := os.ReadFile(file); err == nil {
			if string(text) != "-x http://127.0.0.1/?a=1&b=$HOME" {
				t.Errorf("opened %s", text)
			}
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Error("the command did not run")
}

func TestCommandThatIsMissingIsAnError(t *testing.T) {
	if Open([]string{"/no/such/program"}, "http://127.0.0.1/") == nil {
		t.Error("no error")
	}
}
