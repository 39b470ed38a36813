// Package proc runs the processes that a benchmark compares, each as an
// operating system process of its own, and samples what they cost: CPU time,
// resident memory, descriptors. It owns their lifetime; what they serve is the
// caller's.
package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrUnsupported is returned by samplers on systems without /proc.
var ErrUnsupported = errors.New("proc: not measured on this system")

// startTimeout bounds the time that a process may take until it listens.
const startTimeout = 30 * time.Second

// Process is a running child.
type Process struct {
	Name    string
	Addr    string // host:port that it serves
	Control string // host:port of its control endpoint; "" when it has none
	Secure  string // host:port that it serves by TLS; "" where it does not
	cmd     *exec.Cmd
	done    chan struct{}
	log     *tail
}

// Announce prints the addresses that Start waits for. A child calls it once
// it listens; control and secure may be "".
func Announce(w io.Writer, addr, control, secure string) error {
	_, err := fmt.Fprintf(w, "listening %s %s %s\n", addr, control, secure)
	return err
}

// Start runs a command that announces its addresses on stdout.
func Start(name string, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(path, args...), done: make(chan struct{}), log: &tail{}}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	timer := time.AfterFunc(startTimeout, p.kill)
	defer timer.Stop()
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "listening %s %s %s", &p.Addr, &p.Control, &p.Secure); n >= 1 {
			go func() { _, _ = io.Copy(io.Discard, out); _ = p.cmd.Wait(); close(p.done) }()
			return p, nil
		}
	}
	p.kill()
	_ = p.cmd.Wait()
	close(p.done)
	return nil, fmt.Errorf("proc: %s did not start: %s", name, p.log)
}

// StartAt runs a command that serves addr without announcing it, and waits
// until addr accepts connections. env is added to this process's environment.
func StartAt(name, addr string, env []string, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, Addr: addr, cmd: exec.Command(path, args...), done: make(chan struct{}), log: &tail{}}
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.run(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	deadline := time.Now().Add(startTimeout)
	for {
		nc, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return p, nc.Close()
		}
		select {
		case <-p.done:
			return nil, fmt.Errorf("proc: %s ended at its start: %s", name, p.log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.Stop()
			return nil, fmt.Errorf("proc: %s does not listen on %s: %w: %s", name, addr, err, p.log)
		}
	}
}

func (p *Process) run() error {
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("proc: %s: %w", p.Name, err)
	}
	return nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Alive reports whether the process still runs.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Log returns the end of what the process wrote to stderr.
func (p *Process) Log() string { return p.log.String() }

// Stop asks the process to end and kills it when it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.kill()
		<-p.done
	}
}

func (p *Process) kill() { _ = p.cmd.Process.Kill() }

// FreeAddr returns a loopback address that nothing listens on right now.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Self is the path of the running program, to start it again in another role.
func Self() (string, error) { return os.Executable() }

// tail keeps the last few kilobytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
