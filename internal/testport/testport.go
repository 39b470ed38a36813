// Package testport finds ports of loopback for programs that are told theirs: servers,
// balancers and bridges that tests start.
package testport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// Ports are looked for below those that systems hand out by themselves, to connections and
// to listeners on port 0: between the look and the program's own listen nobody gets one. A
// node of a Redis cluster listens 10000 above its port too, which is below them as well.
const lowest, ports = 10000, 10000

// Closed is an address where nobody listens, at any time of a test.
const Closed = "127.0.0.1:1"

// next is the port to look at, of a place by chance: tests of several packages run at once.
var next atomic.Uint32

func init() { next.Store(rand.Uint32N(ports)) }

// Free returns an address of loopback on which nobody listens, and a port that it returns
// to nobody else in this process. Errors: none is free.
func Free() (string, error) {
	for range ports {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+next.Add(1)%ports)
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("no port of loopback is free")
}
