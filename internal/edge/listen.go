package edge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// open opens the socket of an address, HOST:PORT or unix:PATH, which a flag names.
func open(ctx context.Context, flag, address string) (net.Listener, error) {
	network, at := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, at = "unix", path
		removeDeadSocket(ctx, path)
	}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // whose sockets take no filter (overhear)
	listener, err := plain.Listen(ctx, network, at)
	if err != nil {
		return nil, listenError(flag, address, err)
	}
	return listener, nil
}

// CheckSocket reports that a listener, which a flag names, could not open since the directory of its Unix socket is missing.
func CheckSocket(flag, address string) error {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return listenError(flag, address, err)
	}
	return nil
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
func listenError(flag, address string, err error) error {
	host, port, _ := net.SplitHostPort(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is taken by another program; stop that one, or choose another address with %s %s",
			address, flag, alternative(host, port))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory of %s does not exist; create it, or choose another path with %s %s", address, flag, alternative(host, port))
	case errors.Is(err, fs.ErrPermission) && strings.HasPrefix(address, "unix:"):
		return fmt.Errorf("this user may not create %s; allow it to write to the directory, or choose another path with %s %s",
			address, flag, alternative(host, port))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not listen on %s; choose a port above 1023 with %s %s", address, flag, net.JoinHostPort(host, "8080"))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine; listen on all of them with %s :%s", host, flag, port)
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

// IsLoopback reports whether only this machine can reach an address.
func IsLoopback(address string) bool {
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
