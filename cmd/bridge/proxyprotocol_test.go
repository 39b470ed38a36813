package main

import (
	"bufio"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
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
		in := bufio.NewReaderSize(strings.NewReader(tc.header+request), maxProxyHeader)
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
		client, err := readProxyHeader(bufio.NewReaderSize(strings.NewReader(header), maxProxyHeader))
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
	files, _ := writePair(t, t.TempDir(), 1)
	t.Cleanup(func() { setLevel("info") })
	header := "PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n"
	dial := func(p *process) net.Conn {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	flags := []string{"serve", "--upstream", deadURL(t), "--listen", "127.0.0.1:0", "--log.level", "debug"}

	p := start(t, append(flags, "--proxy-protocol", "on", "--trusted-proxies", "127.0.0.0/8")...)
	if got := exchange(t, dial(p), header+request); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("got %q", got)
	}
	p.expect(`"remote":"192.0.2.7:4660"`)
	if got := exchange(t, dial(p), request); got != "" && !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("a connection without a header gets %q", got)
	}
	p.expect("closed a connection without a valid PROXY header")

	secure := start(t, append(flags, "--proxy-protocol", "on", "--trusted-proxies", "127.0.0.1", "--tls.cert", files.Cert, "--tls.key", files.Key)...)
	conn := dial(secure)
	if _, err := io.WriteString(conn, header); err != nil {
		t.Fatal(err)
	}
	if got := exchange(t, tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), request); !strings.HasPrefix(got, "HTTP/1.1 200") { //nolint:gosec // its own
		t.Errorf("over TLS: got %q", got)
	}
	secure.expect(`"remote":"192.0.2.7:4660"`)

	stranger := start(t, append(flags, "--proxy-protocol", "on", "--trusted-proxies", "10.0.0.0/8")...)
	if got := exchange(t, dial(stranger), request); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("one who is no proxy gets %q", got)
	}
	if got := exchange(t, dial(stranger), header+request); strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("one who only says that he is a proxy gets %q", got)
	}
	if status, _ := stranger.get("/healthz"); status != http.StatusOK {
		t.Errorf("the others get %d afterwards", status)
	}
}
