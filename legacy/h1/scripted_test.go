package h1

import (
	"io"
	"net"
	"time"
)

// scripted is a connection that brings a given text, and notes each write.
type scripted struct {
	in  io.Reader
	out []string
}

func (c *scripted) Read(p []byte) (int, error) { return c.in.Read(p) }
func (c *scripted) Write(p []byte) (int, error) {
	c.out = append(c.out, string(p))
	return len(p), nil
}
func (*scripted) Close() error                     { return nil }
func (*scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*scripted) SetDeadline(time.Time) error      { return nil }
func (*scripted) SetReadDeadline(time.Time) error  { return nil }
func (*scripted) SetWriteDeadline(time.Time) error { return nil }
