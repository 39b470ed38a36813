package roundtrip

import (
	"context"
	"net"
	"time"
)

// How long a connection may be silent before the other end's kernel is asked whether it lives, how
// often it is asked again, and how often in all. One that the network has swallowed is given up in
// 25 s; the kernel's own answer takes minutes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 2}

// Dialer returns how connections to servers are made.
func Dialer(timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAliveConfig: keepAlive}).DialContext
}
