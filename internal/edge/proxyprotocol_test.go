package edge

import (
	"bufio"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/internal/testcert"
	"github.com/rs/zerolog"
)

// block is a header of version 2; body is hexadecimal.
func block(command, family byte, body string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
	if err != nil {
		panic(err)
	}
	return string(proxySignature) + string([]byte{0x20 | command, family, byte(len(raw) >> 8), byte(len(raw))}) + string(raw)
}

const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

func TestPROXYHeaders(t *testing.T) {
	const v4 = "c0000207 0a000001 1234 0050"
	for _, tc := range []struct {
		name, header, client string
		bad                  bool
	}{
		{"version 1", "PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n", "192.0.2.7:4660", false},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::7 ::1 4660 80\r\n", "[2001:db8::7]:4660", false},
		{"version 1, unknown", "PROXY UNKNOWN ffff::1 x\r\n", "", false},
		{"version 2", block(1, 0x11, v4), "192.0.2.7:4660", false},
		{"version 2 with further fields", block(1, 0x11, v4+"030004 01020304"), "192.0.2.7:4660", false},
		{"version 2 with a certificate", block(1, 0x11, v4+"041388"+strings.Repeat("01", 5000)), "192.0.2.7:4660", false},
		{"version 2 of the greatest length", block(1, 0x11, v4+strings.Repeat("01", 1<<16-1-12)), "192.0.2.7:4660", false},
		{"version 2, the proxy itself, with fields", block(0, 0x11, v4+strings.Repeat("01", 8<<10)), "", false},
		{"further fields cut off", block(1, 0x11, v4+strings.Repeat("01", 8<<10))[:4<<10], "", true},
		{"version 2, IPv6", block(1, 0x21, "20010db8000000000000000000000007 00000000000000000000000000000001 1234 0050"), "[2001:db8::7]:4660", false},
		{"version 2, the proxy itself", block(0, 0, ""), "", false},
		{"version 2, Unix socket", block(1, 0x31, strings.Repeat("00", 216)), "", false},
		{"none", request, "", true},
		{"TLS instead", "\x16\x03\x01\x00\xa5\x01", "", true},
		{"other family than it says", "PROXY TCP6 192.0.2.7 10.0.0.1 4660 80\r\n", "", true},
		{"no address", "PROXY TCP4 here there 1 2\r\n", "", true},
		{"words missing", "PROXY TCP4 192.0.2.7\r\n", "", true},
		{"line without an end", "PROXY TCP4 " + strings.Repeat("1", 5000), "", true},
		{"long line", "PROXY UNKNOWN " + strings.Repeat("x", 200) + "\r\n", "", true},
		{"cut off", block(1, 0x11, "c0000207"), "", true},
		{"other version", strings.Replace(block(1, 0x11, v4), "\x21", "\x31", 1), "", true},
	} {
		in := bufio.NewReaderSize(strings.NewReader(tc.header+request), proxyBuffer)
		client, err := readProxyHeader(in)
		if (err != nil) != tc.bad || client.IsValid() && client.String() != tc.client || !client.IsValid() && tc.client != "" {
			t.Errorf("%s: %v, %v", tc.name, client, err)
		}
		if rest, _ := io.ReadAll(in); !tc.bad && string(rest) != request {
			t.Errorf("%s: %q follows the header", tc.name, rest)
		}
	}
}

func FuzzPROXYHeader(f *testing.F) {
	f.Add("PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n")
	f.Add(block(1, 0x11, "c0000207 0a000001 1234 0050"))
	f.Fuzz(func(t *testing.T, header string) {
		client, err := readProxyHeader(bufio.NewReaderSize(strings.NewReader(header), proxyBuffer))
		if err != nil && client.IsValid() {
			t.Errorf("%q gives both %v and %v", header, client, err)
		}
	})
}

// exchange sends bytes on a connection of its own and returns all that comes back.
func exchange(t *testing.T, conn net.Conn, bytes string) string {
	t.Helper()
	defer conn.Close()
	if _, err := io.WriteString(conn, bytes); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	return string(text)
}

func TestPROXYHeadersOfTrustedProxiesGiveTheClientsAddress(t *testing.T) {
	header := "PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n"
	local := trusting([]string{"127.0.0.0/8"})
	local.Protocol = true
	p, log := serve(t, from, Options{Proxies: local})
	if got := exchange(t, dial(t, p), header+request); !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.HasSuffix(got, "192.0.2.7:4660") {
		t.Errorf("got %q", got)
	}
	log.expect(t, `"remote":"192.0.2.7:4660"`)
	if got := exchange(t, dial(t, p), request); got != "" && !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("a connection without a header gets %q", got)
	}
	log.expect(t, "closed a connection without a valid PROXY header")

	cert, key, _ := testcert.Write(t, t.TempDir(), 1)
	secure, _ := serve(t, from, Options{Proxies: local, TLS: Files{cert, key}})
	conn := dial(t, secure)
	if _, err := io.WriteString(conn, header); err != nil {
		t.Fatal(err)
	}
	if got := exchange(t, tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), request); !strings.HasSuffix(got, "192.0.2.7:4660") { //nolint:gosec // its own
		t.Errorf("over TLS: got %q", got)
	}

	far := trusting([]string{"10.0.0.0/8"})
	far.Protocol = true
	stranger, _ := serve(t, from, Options{Proxies: far})
	if got := exchange(t, dial(t, stranger), request); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("one who is no proxy gets %q", got)
	}
	if got := exchange(t, dial(t, stranger), header+request); strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("one who only says that he is a proxy gets %q", got)
	}
	stranger.Trust(local)
	if got := exchange(t, dial(t, stranger), header+request); !strings.HasSuffix(got, "192.0.2.7:4660") {
		t.Errorf("one who is trusted by now gets %q", got)
	}
}

// TestAHeaderThatDoesNotComeIsNoTimeout: who reads a connection tries again after one, and here it would be told the same at once, for ever.
func TestAHeaderThatDoesNotComeIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &proxyConn{Conn: near, log: zerolog.Nop(), in: bufio.NewReaderSize(near, proxyBuffer)}
		defer c.Close()
		_, err := c.Read(make([]byte, 1))
		var late net.Error
		if err == nil || errors.As(err, &late) && late.Timeout() {
			t.Errorf("it says %v", err)
		}
	})
}
