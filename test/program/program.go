// Package program runs the bridge as a process, for the drivers beside it.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/mcpbridge/bridge/internal/testport"
)

// Bridge is the program under test.
type Bridge struct {
	URL     string // of the endpoint
	process *exec.Cmd
	dir     string
}

// Start starts the bridge on a free port in front of a server, with further flags. An
// empty binary is built first, from the repository's root.
func Start(ctx context.Context, binary, upstream string, flags ...string) (*Bridge, error) {
	b := &Bridge{}
	if binary == "" {
		dir, err := os.MkdirTemp("", "bridge")
		if err != nil {
			return nil, err
		}
		b.dir, binary = dir, filepath.Join(dir, "bridge")
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/bridge")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("the bridge cannot be built (run this from the repository's root): %w", err)
		}
	}
	address, err := testport.Free()
	if err != nil {
		return nil, err
	}
	b.URL = "http://" + address + "/mcp"
	b.process = exec.CommandContext(ctx, binary, append([]string{"serve", "--listen", address, "--upstream", upstream, "--log.level", "error"}, flags...)...)
	b.process.Stderr = os.Stderr
	if err := b.process.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		if conn, err := net.Dial("tcp", address); err == nil {
			return b, conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Stop()
	return nil, errors.New("the bridge does not listen")
}

// Resident returns how much memory the process has now, and how much it had at most, in
// bytes. It is known on Linux only.
func (b *Bridge) Resident() (now, most int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.process.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	return kilobytes(status, "VmRSS:"), kilobytes(status, "VmHWM:"), nil
}

// Kinds returns how much of the resident memory is the process's own, and how much are pages of
// files, which the system takes back when it needs them, in bytes.
func (b *Bridge) Kinds() (own, files int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.process.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	return kilobytes(status, "RssAnon:"), kilobytes(status, "RssFile:"), nil
}

func kilobytes(status []byte, name string) int64 {
	_, rest, _ := bytes.Cut(status, []byte(name))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return n << 10
}

// Stop ends the process, and cleans up.
func (b *Bridge) Stop() {
	_ = b.process.Process.Signal(syscall.SIGTERM)
	killed := time.AfterFunc(10*time.Second, func() { _ = b.process.Process.Kill() })
	defer killed.Stop()
	_ = b.process.Wait()
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}
