// Package redistest runs real Redis servers for tests: on loopback ports, with
// directories of their own, until the test ends.
package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testport"
)

// Server is a running server.
type Server struct {
	Port    int
	t       testing.TB
	program string
	prefix  []string // before all other arguments
	args    []string
	dir     string
	process *exec.Cmd
	output  bytes.Buffer
}

// Start starts a server with arguments besides those for its port and directory. It
// skips the test where there is none in PATH.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, args: args, dir: t.TempDir()}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if program, err := exec.LookPath(name); err == nil {
			s.program = program
			break
		}
	}
	if s.program == "" {
		t.Skip("left out: neither redis-server nor valkey-server is in PATH (apt-get install redis-server)")
	}
	address, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	s.Port = int(netip.MustParseAddrPort(address).Port())
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts a server again after Kill, on the same port. It remembers nothing.
func (s *Server) Restart() {
	s.t.Helper()
	own := []string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no"}
	if s.prefix == nil {
		own = append(own, "--save", "", "--appendonly", "no")
	}
	s.process = exec.Command(s.program, slices.Concat(s.prefix, own, s.args)...)
	s.output.Reset()
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.await()
}

// await waits until the server listens.
func (s *Server) await() {
	s.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range 1000 {
		if conn, err := net.Dial("tcp", s.Addr()); err == nil {
			_ = conn.Close()
			return
		}
		<-look.C
	}
	s.Kill()
	s.t.Fatalf("%s does not listen:\n%s", s.program, s.output.String())
}

// Kill ends the server at once. It is idempotent.
func (s *Server) Kill() {
	if s.process != nil && s.process.ProcessState == nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// Signal sends the server a signal.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Pid returns the number of the server's process.
func (s *Server) Pid() int { return s.process.Process.Pid }

// Addr returns host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.Port) }

// Do sends one command and returns the first line of the reply.
func (s *Server) Do(words ...string) string {
	s.t.Helper()
	line, _ := s.ask(words)
	return line
}

// Text sends one command and returns the text that it replies.
func (s *Server) Text(words ...string) string {
	s.t.Helper()
	_, text := s.ask(words)
	return text
}

// ask sends a command. It returns the first line of the reply, and the text behind it
// where that line announces one.
func (s *Server) ask(words []string) (line, text string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	command := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		command = fmt.Appendf(command, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err = conn.Write(command); err != nil {
		s.t.Fatal(err)
	}
	reply := bufio.NewReader(conn)
	if line, err = reply.ReadString('\n'); err != nil {
		s.t.Fatal(err)
	}
	line = strings.TrimSpace(line)
	if size, err := strconv.Atoi(strings.TrimPrefix(line, "$")); err == nil && strings.HasPrefix(line, "$") && size > 0 {
		raw := make([]byte, size)
		if _, err := io.ReadFull(reply, raw); err != nil {
			s.t.Fatal(err)
		}
		text = string(raw)
	}
	return line, text
}

// Commands returns how many commands the server has processed.
func (s *Server) Commands() int {
	s.t.Helper()
	_, rest, _ := strings.Cut(s.Text("INFO", "stats"), "total_commands_processed:")
	number, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(number)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Must is Do for a command that must succeed.
func (s *Server) Must(words ...string) {
	s.t.Helper()
	if reply := s.Do(words...); strings.HasPrefix(reply, "-") {
		s.t.Fatalf("%s: %s", words[0], reply)
	}
}
