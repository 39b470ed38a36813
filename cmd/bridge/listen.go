package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/mcpbridge/bridge/config"
	"github.com/rs/zerolog"
)

// listen opens the listener that the configuration names, and returns what holds
// its certificate, nil without one. What begin wraps sees connections before TLS does.
func listen(ctx context.Context, cfg *config.Config, log zerolog.Logger, begin func(net.Listener) net.Listener) (net.Listener, *reloader, error) {
	secure, certificate, err := serverTLS(&cfg.TLS, log)
	if err != nil {
		return nil, nil, err
	}
	network, address := "tcp", cfg.Listen
	if path, ok := strings.CutPrefix(cfg.Listen, "unix:"); ok {
		network, address = "unix", path
		removeDeadSocket(ctx, path)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, nil, listenError(cfg.Listen, err)
	}
	listener = begin(listener)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	return listener, certificate, nil
}

// removeDeadSocket removes a Unix socket that a killed process left behind. A
// socket on which somebody answers, or a file that is none, stays.
func removeDeadSocket(ctx context.Context, path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path)
	}
}

// listenError says what to do about a listener that did not open.
func listenError(address string, err error) error {
	host, port, _ := net.SplitHostPort(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is taken by another program; stop that one, or choose another address with --listen %s",
			address, alternative(host, port))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory of %s does not exist; create it, or choose another path with --listen %s", address, alternative(host, port))
	case errors.Is(err, fs.ErrPermission) && strings.HasPrefix(address, "unix:"):
		return fmt.Errorf("this user may not create %s; allow it to write to the directory, or choose another path with --listen %s",
			address, alternative(host, port))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not listen on %s; choose a port above 1023 with --listen %s", address, net.JoinHostPort(host, "8080"))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine; listen on all of them with --listen :%s", host, port)
	}
	return fmt.Errorf("cannot listen on %s: %w", address, err)
}

// alternative suggests the next port, or another path for a socket.
func alternative(host, port string) string {
	n, err := strconv.Atoi(port)
	if err != nil {
		return "unix:OTHER-PATH"
	}
	return net.JoinHostPort(host, strconv.Itoa(n%65535+1))
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
