package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"

	"github.com/mcpbridge/bridge/bench/control"
	"github.com/mcpbridge/bridge/bench/proc"
	"github.com/mcpbridge/bridge/bench/proxy"
	"github.com/mcpbridge/bridge/bench/stub"
)

// Roles that the program plays when it is started as "compare role NAME".
const (
	roleModern = "modern" // stub server of 2026-07-28
	roleLegacy = "legacy" // stub server of 2025-11-25
	roleProxy  = "proxy"  // ReverseProxy in front of -upstream
)

// runRole serves until it is killed.
func runRole(args []string) error {
	if len(args) == 0 {
		return errors.New("role: no name")
	}
	f := flag.NewFlagSet("role", flag.ContinueOnError)
	upstream := f.String("upstream", "", "origin of the server behind a proxy")
	certs := f.String("certs", "", "directory of a certificate to serve TLS with, on a second port")
	tools := f.Int("tools", 20, "tools that a server offers")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	handler, err := roleHandler(args[0], *upstream, *tools)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	at, err := control.Serve("127.0.0.1:0")
	if err != nil {
		return err
	}
	secure := ""
	if *certs != "" {
		s, err := listenTLS(*certs)
		if err != nil {
			return err
		}
		secure = s.Addr().String()
		go func() { exit(serve(s, handler)) }()
	}
	if err := proc.Announce(os.Stdout, l.Addr().String(), at, secure); err != nil {
		return err
	}
	return serve(l, handler)
}

// listenTLS listens for HTTP/1.1 over TLS.
func listenTLS(certs string) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(certificate(certs))
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
}

// serve serves a handler on a listener until the process ends.
func serve(l net.Listener, h http.Handler) error { return (&http.Server{Handler: h}).Serve(l) }

func roleHandler(role, upstream string, tools int) (http.Handler, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	switch role {
	case roleModern:
		debug.SetGCPercent(400) // the servers are not what is measured
		return stub.NewModern(tools), nil
	case roleLegacy:
		debug.SetGCPercent(400)
		return stub.NewLegacy(tools), nil
	case roleProxy:
		return proxy.New(u), nil
	}
	return nil, fmt.Errorf("role: unknown name %q", role)
}
