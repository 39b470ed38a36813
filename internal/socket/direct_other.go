//go:build !linux || purego || race || 386

package socket

import (
	"net"
	"syscall"
)

// direct is nothing here: net does it all.
type direct struct{}

func newDirect(net.Conn, syscall.RawConn) *direct { return nil }

func (*direct) read([]byte) (int, error) { panic("unreachable") }

func (*direct) write([mostPieces][]byte, int) (int, error) { panic("unreachable") }
