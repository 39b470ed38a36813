// Package testbridge starts a bridge with default limits in front of a test's
// upstream. Only tests import it; the command wires the same parts with its
// configuration.
package testbridge

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// Start starts a bridge on a loopback port in front of the modern server at
// upstreamURL. observe, when not nil, wraps its handler. stop ends the bridge
// and all its goroutines; calling it again does nothing.
func Start(upstreamURL string, observe func(http.Handler) http.Handler) (url string, stop func(), err error) {
	caller, err := streamable.New(streamable.Options{URL: upstreamURL, StandardTransport: testmode.StandardHTTP()})
	if err != nil {
		return "", nil, err
	}
	b := bridge.New(bridge.Options{Upstream: caller, Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil)})
	front := legacy.NewHTTP(legacy.Options{NoPark: testmode.NoPark()}, b)
	var handler http.Handler = front
	if observe != nil {
		handler = observe(handler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := testmode.NewServer(handler, &http.Server{ReadHeaderTimeout: 10 * time.Second, ConnContext: quiet.ConnContext})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(listener)
	}()
	var once sync.Once
	return "http://" + listener.Addr().String() + "/mcp", func() {
		once.Do(func() {
			front.Close()
			b.Close()
			_ = srv.Close()
			<-served
			_ = caller.Close()
		})
	}, nil
}
