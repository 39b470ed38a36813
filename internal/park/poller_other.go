//go:build !linux

package park

import "net"

const supported = false

// Poller waits for connections. This system has none.
type Poller struct{}

// New returns ErrUnsupported.
func New() (*Poller, error) { return nil, ErrUnsupported }

// Watch returns ErrUnsupported.
func (p *Poller) Watch(net.Conn, Event, Owner) (Watch, error) { return 0, ErrUnsupported }

// Forget reports false: there are no watches.
func (p *Poller) Forget(Watch) bool { return false }

// Owners returns nothing.
func (p *Poller) Owners() []Owner { return nil }

// Len returns 0.
func (p *Poller) Len() int { return 0 }

// Close does nothing.
func (p *Poller) Close() {}

// TryWrite returns ErrUnsupported.
func TryWrite(net.Conn, []byte) (int, error) { return 0, ErrUnsupported }

// Waiting returns ErrUnsupported.
func Waiting(net.Conn) (bool, error) { return false, ErrUnsupported }
