//go:build !linux

package h1

import "net"

// pending is not known here: a request that comes just as its connection is closed is lost.
func pending(net.Conn) bool { return false }
