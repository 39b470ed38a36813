package edge

import (
	"net"
	"syscall"
)

// connections counts the connections of a listener by tenant, among so many file descriptors. It
// is nobody's where there are no addresses.
func connections(descriptors int, listener net.Addr, tenant func(net.Addr) string) map[string]int {
	of := map[string]int{}
	here, ok := listener.(*net.TCPAddr)
	if !ok {
		return of
	}
	for fd := range descriptors {
		if local := tcpAddr(syscall.Getsockname(fd)); local == nil || local.Port != here.Port {
			continue
		}
		if peer := tcpAddr(syscall.Getpeername(fd)); peer != nil {
			of[tenant(peer)]++
		}
	}
	return of
}

// tcpAddr is an address of a socket, nil for those of others.
func tcpAddr(at syscall.Sockaddr, err error) *net.TCPAddr {
	if err != nil {
		return nil
	}
	switch at := at.(type) {
	case *syscall.SockaddrInet4:
		return &net.TCPAddr{IP: at.Addr[:], Port: at.Port}
	case *syscall.SockaddrInet6:
		return &net.TCPAddr{IP: at.Addr[:], Port: at.Port}
	}
	return nil
}
