//go:build !linux

package park

import "net"

const supported = false

// Poller waits for sockets. This system has none.
type Poller struct{}

// New returns ErrUnsupported.
func New() (*Poller, error) { return nil, ErrUnsupported }

// Watch returns ErrUnsupported.
func (p *Poller) Watch(Socket, Event, Owner) (Watch, error) { return 0, ErrUnsupported }

// Forget reports false: there are no watches.
func (p *Poller) Forget(Watch) bool { return false }

// Drop does nothing.
func (p *Poller) Drop(Socket) {}

// Owners returns nothing.
func (p *Poller) Owners() []Owner { return nil }

// Len returns 0.
func (p *Poller) Len() int { return 0 }

// Left reports false: it cannot be told here.
func Left(net.Conn) bool { return false }

// Close does nothing.
func (p *Poller) Close() {}

// Dup returns ErrUnsupported.
func Dup(net.Conn) (Socket, error) { return 0, ErrUnsupported }

// Close does nothing.
func (s Socket) Close() {}

// Conn returns ErrUnsupported.
func (s Socket) Conn() (net.Conn, error) { return nil, ErrUnsupported }

// Exhausted reports false.
func Exhausted(error) bool { return false }

// TryWrite returns ErrUnsupported.
func (s Socket) TryWrite([]byte) (int, error) { return 0, ErrUnsupported }

// Waiting returns ErrUnsupported.
func (s Socket) Waiting() (bool, error) { return false, ErrUnsupported }
