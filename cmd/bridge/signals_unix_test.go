//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe that nobody writes is never read to its end: the first signal ends whoever only reads.
func TestTheFirstSignalEndsWhoOnlyReads(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(syscall.Mkfifo(pipe, 0o600))
	for _, args := range [][]string{
		{"config", "validate", pipe},
		{"report", pipe},
		{"serve", "--config", pipe},
		{"serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--tls.cert", pipe, "--tls.key", pipe},
		{"stdio", "--config", pipe},
		{"replay", pipe, "--against", "http://127.0.0.1:9"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), programVariable+"=1")
			must(cmd.Start())
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			defer held(t, pipe).Close()
			must(cmd.Process.Signal(syscall.SIGTERM))
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("it goes on")
				_ = cmd.Process.Kill()
				<-ended
			}
		})
	}
}

func TestAConfigurationWithoutEndIsRefusedAtOnce(t *testing.T) {
	_, _, err := validate("/dev/zero", nil)
	if err == nil || !strings.Contains(err.Error(), "/dev/zero: has more than 1048576 bytes") {
		t.Errorf("it is judged with %v", err)
	}
}
