// Package client is a lean legacy MCP client for the load generator: HTTP/1.1
// on persistent connections, one goroutine per exchange, every answer checked.
// It implements only what servers of the benchmark send, but refuses what it
// does not understand, so that a broken response is an error and never a wrong
// figure. It owns connections and sessions; pacing and counting are in load.
package client

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Timeout bounds one whole exchange, so that a lost answer ends as an error.
const Timeout = 30 * time.Second

// Conn is one persistent connection. It dials when first used and again after
// an error or a response that closed it. It is not safe for concurrent use.
type Conn struct {
	addr string
	from net.Addr // nil: the system's choice
	size int
	nc   net.Conn // nil while closed
	cut  net.Conn // the last nc, for Abort
	br   *bufio.Reader
	out  []byte
	body []byte

	// the response being read
	Status    int
	SessionID string
	SSE       bool
	left      int64 // bytes left in the body or chunk; -1: until EOF
	chunked   bool
	ended     bool
	close     bool
	armed     time.Time // when the deadline was last moved
}

// NewConn makes a connection to addr with a read buffer of size bytes. An addr that
// begins with TLS is spoken with over TLS; any certificate will do.
func NewConn(addr string, size int) *Conn { return &Conn{addr: addr, size: size} }

// NewConnOf makes a connection of one of many machines, as far as the server can tell: some of the
// addresses that this one has for itself. No address may have nearly all that the bridge can serve.
func NewConnOf(machine int, addr string, size int) *Conn {
	const machines = 32
	return &Conn{addr: addr, from: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+machine%machines))}, size: size}
}

// TLS begins addresses of servers that speak it.
const TLS = "https://"

// dial connects to addr.
func dial(addr string, from net.Addr) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second, LocalAddr: from}
	if host, secure := strings.CutPrefix(addr, TLS); secure {
		return tls.DialWithDialer(dialer, "tcp", host, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a process of the same run
	}
	return dialer.Dial("tcp", addr)
}

// Close closes the connection; the next exchange dials again.
func (c *Conn) Close() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// Abort cuts the connection under an exchange that another goroutine is
// reading, whose read then fails. Only Abort may be called concurrently.
func (c *Conn) Abort() { _ = c.cut.Close() }

// Send writes a request: head is everything up to and including
// "Content-Length: ", or a complete head when body is nil.
func (c *Conn) Send(head string, body []byte) error {
	if c.nc == nil {
		nc, err := dial(c.addr, c.from)
		if err != nil {
			return err
		}
		c.nc, c.cut, c.armed = nc, nc, time.Time{}
		if c.br == nil {
			c.br = bufio.NewReaderSize(nc, c.size)
		}
		c.br.Reset(nc)
	}
	c.arm()
	c.out = append(c.out[:0], head...)
	if body != nil {
		c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
		c.out = append(append(c.out, "\r\n\r\n"...), body...)
	}
	if _, err := c.nc.Write(c.out); err != nil {
		c.Close()
		return err
	}
	return nil
}

// arm sets the exchange's deadline. Moving a deadline costs as much as a small
// read, so it is moved only when a good part of it has passed; an exchange
// still has at least three quarters of the timeout.
func (c *Conn) arm() {
	now := time.Now()
	if now.Sub(c.armed) < Timeout/4 {
		return
	}
	c.armed = now
	_ = c.nc.SetDeadline(now.Add(Timeout))
}

// rest lifts the deadline, for a stream that may stay quiet.
func (c *Conn) rest() {
	c.armed = time.Time{}
	_ = c.nc.SetDeadline(c.armed)
}

var errHead = errors.New("client: malformed response head")

// ReadHead reads a status line and headers.
func (c *Conn) ReadHead() error {
	err := c.readHead()
	if err != nil {
		c.Close()
	}
	return err
}

func (c *Conn) readHead() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	if len(line) < 12 || string(line[:9]) != "HTTP/1.1 " {
		return fmt.Errorf("%w: %.60q", errHead, line)
	}
	if c.Status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fmt.Errorf("%w: %.60q", errHead, line)
	}
	c.SSE, c.chunked, c.close, c.ended, c.left = false, false, false, false, -1
	for {
		if line, err = c.line(); err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		if err := c.header(line); err != nil {
			return err
		}
	}
	switch {
	case c.Status == 202 && c.left < 0 && !c.chunked, c.Status == 204, c.left == 0:
		c.ended, c.left = true, 0
	case c.chunked:
		c.left = 0
	}
	return nil
}

// line returns one line without its CRLF, valid until the next read.
func (c *Conn) line() ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return trimCR(line[:len(line)-1]), nil
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

func (c *Conn) header(line []byte) error {
	i := 0
	for i < len(line) && line[i] != ':' {
		i++
	}
	if i == len(line) {
		return fmt.Errorf("%w: %.60q", errHead, line)
	}
	value := line[i+1:]
	for len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch name := line[:i]; {
	case fold(name, "content-length"):
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %.60q", errHead, line)
		}
		c.left = n
	case fold(name, "transfer-encoding"):
		c.chunked = fold(value, "chunked")
	case fold(name, "content-type"):
		c.SSE = strings.HasPrefix(string(value), "text/event-stream")
	case fold(name, "connection"):
		c.close = fold(value, "close")
	case fold(name, "mcp-session-id"):
		if string(value) != c.SessionID {
			c.SessionID = string(value)
		}
	}
	return nil
}

// fold compares with a lower-case ASCII name, ignoring case.
func fold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, ch := range b {
		if ch >= 'A' && ch <= 'Z' {
			ch += 'a' - 'A'
		}
		if ch != lower[i] {
			return false
		}
	}
	return true
}
