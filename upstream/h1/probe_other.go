//go:build !unix

package h1

import "net"

// probe is not available: idle connections are used as they are.
type probe struct{}

func newProbe(net.Conn) *probe { return nil }

func (*probe) peek([]byte) (int, bool) { return 0, false }
