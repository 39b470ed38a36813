//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that can be killed, paused and started again.
type process struct {
	name    string
	program string
	args    []string
	address string // where it listens, when it is ready

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan struct{}
	log     string // file of what it says
}

// startTries is how often a program is started that ends at once, as a supervisor does: a
// bridge does not start without its store.
const startTries = 60

// start runs the program until it listens.
func (p *process) start() (err error) {
	for range startTries {
		if err = p.startOnce(); err == nil {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return err
}

func (p *process) startOnce() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	said, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	p.command = exec.Command(p.program, p.args...)
	p.command.Stdout, p.command.Stderr = said, said
	if err := p.command.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		_ = command.Wait()
		close(ended)
	}(p.command, p.ended)
	return p.await()
}

func (p *process) await() error {
	for range 2000 {
		if conn, err := net.Dial("tcp", p.address); err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: see %s", p.name, p.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen: see %s", p.name, p.log)
}

func (p *process) signal(sig syscall.Signal) { _ = p.command.Process.Signal(sig) }

// kill ends the program as a lost machine does.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// stop ends the program in order. It reports how that went wrong.
func (p *process) stop(limit time.Duration) error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not end within %v", p.name, limit)
	}
	text, err := os.ReadFile(p.log)
	if strings.Contains(string(text), "panic:") {
		return fmt.Errorf("%s panicked: see %s", p.name, p.log)
	}
	return err
}

// find returns the first of some programs that is there.
func find(names ...string) (string, error) {
	for _, name := range names {
		for _, path := range []string{name, "/usr/sbin/" + name} {
			if program, err := exec.LookPath(path); err == nil {
				return program, nil
			}
		}
	}
	return "", fmt.Errorf("none of %s is there (apt-get install %s)", strings.Join(names, ", "), names[0])
}
