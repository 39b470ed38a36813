package edge

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// proxied is a listener whose connections tell, when they come from a trusted
// proxy that speaks the PROXY protocol, the address of the client behind it.
// Everyone else's connections are handed on as they are.
type proxied struct {
	net.Listener
	addresses *addresses
	log       zerolog.Logger
}

// Accept implements net.Listener. It does not wait for the header.
func (l *proxied) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := l.addresses.trusted.Load()
	if !p.Protocol || !p.include(conn.RemoteAddr().String()) {
		return conn, nil
	}
	return &proxyConn{Conn: conn, log: l.log, in: bufio.NewReaderSize(conn, proxyBuffer)}, nil
}

// proxyConn is a connection that begins with a header of the PROXY protocol. The
// header is read by whoever first reads or asks for the address: both are done
// by the goroutine that serves the connection.
type proxyConn struct {
	net.Conn
	log    zerolog.Logger
	in     *bufio.Reader
	once   sync.Once
	client net.Addr // nil: the proxy speaks for itself
	err    error
}

// Read implements net.Conn.
func (c *proxyConn) Read(b []byte) (int, error) {
	if c.once.Do(c.begin); c.err != nil {
		return 0, c.err
	}
	return c.in.Read(b)
}

// RemoteAddr implements net.Conn: the client's address.
func (c *proxyConn) RemoteAddr() net.Addr {
	if c.once.Do(c.begin); c.client != nil {
		return c.client
	}
	return c.Conn.RemoteAddr()
}

func (c *proxyConn) begin() {
	_ = c.Conn.SetReadDeadline(time.Now().Add(headTimeout))
	client, err := readProxyHeader(c.in)
	if err != nil {
		c.err = fmt.Errorf("the PROXY header of %s: %v", c.Conn.RemoteAddr(), err) //nolint:errorlint // to be no timeout: whoever reads would try again, for ever
		c.log.Debug().Err(c.err).Msg("closed a connection without a valid PROXY header")
		return
	}
	_ = c.Conn.SetReadDeadline(time.Time{})
	if client.IsValid() {
		c.client = net.TCPAddrFromAddrPort(client)
	}
}

// Sizes of the PROXY protocol, in bytes: what of a header is in memory at most, how long the line of version 1 may
// be, and what of a block of version 2 says anything here. Its length of 16 bits is its bound.
const (
	proxyBuffer    = 4 << 10
	maxProxyLine   = 107
	proxyAddresses = 2*net.IPv6len + 2*2
)

// proxySignature begins a header of version 2.
var proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")

var errNoProxyHeader = errors.New("there is none")

// readProxyHeader reads a header of either version and returns the client's
// address, invalid when the proxy speaks for itself or does not tell.
func readProxyHeader(in *bufio.Reader) (netip.AddrPort, error) {
	begin, err := in.Peek(6)
	switch {
	case err != nil:
		return netip.AddrPort{}, err
	case string(begin) == "PROXY ":
		return readProxyLine(in)
	case bytes.HasPrefix(proxySignature, begin):
		return readProxyBlock(in)
	}
	return netip.AddrPort{}, errNoProxyHeader
}

// readProxyLine reads version 1: PROXY TCP4 SOURCE DESTINATION PORT PORT.
func readProxyLine(in *bufio.Reader) (netip.AddrPort, error) {
	line, err := in.ReadSlice('\n')
	if err != nil || len(line) > maxProxyLine || !bytes.HasSuffix(line, []byte("\r\n")) {
		return netip.AddrPort{}, errors.New("its line does not end")
	}
	words := strings.Fields(string(line))
	if len(words) >= 2 && words[1] == "UNKNOWN" {
		return netip.AddrPort{}, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return netip.AddrPort{}, errors.New("its line is malformed")
	}
	addr, err := netip.ParseAddr(words[2])
	port, err2 := strconv.ParseUint(words[4], 10, 16)
	if err != nil || err2 != nil || addr.Is4() != (words[1] == "TCP4") {
		return netip.AddrPort{}, errors.New("its address is malformed")
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}

// readProxyBlock reads version 2: the signature, version and command, family,
// length, addresses, and further fields that are passed over.
func readProxyBlock(in *bufio.Reader) (netip.AddrPort, error) {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return netip.AddrPort{}, err
	}
	length := int(binary.BigEndian.Uint16(head[14:]))
	if !bytes.Equal(head[:12], proxySignature) || head[12]>>4 != 2 || head[12]&15 > 1 {
		return netip.AddrPort{}, errors.New("its block is malformed")
	}
	block := make([]byte, min(length, proxyAddresses))
	if _, err := io.ReadFull(in, block); err != nil {
		return netip.AddrPort{}, err
	}
	if _, err := in.Discard(length - len(block)); err != nil { // TLVs, such as the client's certificate
		return netip.AddrPort{}, err
	}
	if head[12]&15 == 0 { // LOCAL: a health check of the proxy's own
		return netip.AddrPort{}, nil
	}
	var size int
	switch head[13] >> 4 {
	case 1:
		size = net.IPv4len
	case 2:
		size = net.IPv6len
	default: // a Unix socket, or unspecified
		return netip.AddrPort{}, nil
	}
	if len(block) < 2*size+4 {
		return netip.AddrPort{}, errors.New("its addresses are cut off")
	}
	addr, _ := netip.AddrFromSlice(block[:size])
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(block[2*size:])), nil
}
