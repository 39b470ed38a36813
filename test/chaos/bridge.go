package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// bridge is the program under test, as a process.
type bridge struct {
	url     string
	process *exec.Cmd
	dir     string
}

// startBridge starts the bridge on a free port in front of a server.
func startBridge(ctx context.Context, binary, upstream string) (*bridge, error) {
	b := &bridge{}
	if binary == "" {
		dir, err := os.MkdirTemp("", "chaos")
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
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	b.url = "http://" + address + "/mcp"
	b.process = exec.CommandContext(ctx, binary, "serve", "--listen", address, "--upstream", upstream, "--timeouts.round", "2s", "--log.level", "error")
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
	b.stop()
	return nil, errors.New("the bridge does not listen")
}

// freeAddress returns a port of loopback that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// stop ends the process, and cleans up.
func (b *bridge) stop() {
	_ = b.process.Process.Signal(syscall.SIGTERM)
	killed := time.AfterFunc(10*time.Second, func() { _ = b.process.Process.Kill() })
	defer killed.Stop()
	_ = b.process.Wait()
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}
