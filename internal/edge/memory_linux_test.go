package edge

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/http2"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/testcert"
)

const (
	greedy = "127.0.0.2"
	modest = "127.0.0.3"
)

// dialFrom connects from an address of this machine, with TLS when protocol says what for.
func dialFrom(t *testing.T, e *Edge, address, protocol string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).Dial("tcp", e.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if protocol == "" {
		return conn
	}
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	_ = secured.SetDeadline(time.Now().Add(patience))
	_ = secured.Handshake() // of those that are refused, too
	return secured
}

// eventually waits until done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// unfinished is most of a head, of many small fields.
func unfinished(size int) string {
	var b strings.Builder
	b.WriteString("GET / HTTP/1.1\r\nHost: localhost\r\n")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "a%x:b\r\n", i)
	}
	return b.String()
}

const preface = http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// unfinishedH2 is a head of many fields of one byte each, whose end is yet to come.
func unfinishedH2() string {
	var out bytes.Buffer
	block := strings.Repeat("\x8f", 3000) // an entry of the static table, over and over
	_ = http2.NewFramer(&out, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("\x82\x84\x87\x41\x01a" + block)})
	return preface + out.String()
}

// ways are how connections are served, with what each of them is to be charged for at least.
var ways = []struct {
	name, protocol string
	standard       bool
	text           string
	least          int64
}{
	{"lean", "", false, unfinished(58 << 10), 60 << 10},
	{"handed over", "", false, "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n" + unfinished(58<<10), 700 << 10},
	{"standard", "", true, unfinished(58 << 10), 700 << 10},
	{"TLS", "http/1.1", false, unfinished(58 << 10), 700 << 10},
	{"HTTP/2", "h2", false, unfinishedH2(), 100 << 10},
}

func options(t *testing.T, protocol string, standard bool) Options {
	opt := Options{StandardHTTP: standard}
	if protocol != "" {
		cert, key, _ := testcert.Write(t, t.TempDir(), 1)
		opt.TLS = Files{cert, key}
	}
	return opt
}

// What a client has begun to say is held for as long as it likes, up to a bound.
func TestUnfinishedHeadsAreCharged(t *testing.T) {
	for _, way := range ways {
		opt := options(t, way.protocol, way.standard)
		opt.Memory = budget.New(64 << 20)
		e, _ := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), opt)
		conn := dialFrom(t, e, greedy, way.protocol)
		_, _ = io.WriteString(conn, way.text)
		eventually(t, way.name+": it is charged", func() bool { return opt.Memory.Used() >= way.least })
		_ = conn.Close()
		eventually(t, way.name+": it is given back", func() bool { return opt.Memory.Used() == 0 })
	}
}

// What was charged for a head is given back with its end; the connection stays charged.
func TestHeadsAreChargedNoLongerThanTheyLast(t *testing.T) {
	for _, way := range ways[:4] {
		opt := options(t, way.protocol, way.standard)
		opt.Memory = budget.New(64 << 20)
		e, _ := serve(t, from, opt)
		conn := dialFrom(t, e, greedy, way.protocol)
		_, _ = io.WriteString(conn, unfinished(6<<10)+"\r\n")
		if _, err := conn.Read(make([]byte, 12)); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
		eventually(t, way.name+": only the connection is left", func() bool { used := opt.Memory.Used(); return used > 0 && used < 64<<10 })
	}
}

// Whoever holds much in heads is refused, and the others are served.
func TestWhoHoldsUnfinishedHeadsIsRefusedAndTheOthersAreServed(t *testing.T) {
	for _, way := range ways {
		opt := options(t, way.protocol, way.standard)
		opt.Memory = budget.New(12 << 20)
		e, log := serve(t, from, opt)
		over := int(opt.Memory.Limit() / way.least)
		for range over + lentToAll {
			_, _ = io.WriteString(dialFrom(t, e, greedy, way.protocol), way.text)
		}
		log.expect(t, "hold too much of limits.memory")
		if got := get(dialFrom(t, e, modest, strings.Replace(way.protocol, "h2", "http/1.1", 1)), "/"); got != "HTTP/1.1 200 OK" {
			t.Errorf("%s: somebody else gets %q", way.name, got)
		}
	}
}

// Who is refused for what others hold is not said to hold it.
func TestTheLogSaysWhetherAnAddressHoldsTooMuchOrAllDo(t *testing.T) {
	opt := Options{Memory: budget.New(4 << 20)}
	opt.Memory.Guest("others").Charge(6 << 20)
	e, log := serve(t, from, opt)
	if got := get(dialFrom(t, e, modest, ""), "/"); got != "HTTP/1.1 503 Service Unavailable" {
		t.Errorf("without memory a newcomer gets %q", got)
	}
	log.expect(t, "hardly any of limits.memory left")
	if strings.Contains(log.String(), "hold too much") {
		t.Errorf("the log says\n%s", log)
	}
}

// lentToAll is a few more connections than are lent to an address.
const lentToAll = 70

// Connections that say nothing are held, too.
func TestConnectionsAreCharged(t *testing.T) {
	for _, standard := range []bool{false, true} {
		memory := budget.New(4 << 20)
		e, log := serve(t, from, Options{Memory: memory, StandardHTTP: standard})
		served, refused := 0, ""
		for served < int(memory.Limit())/(12<<10) && refused == "" {
			if got := get(dialFrom(t, e, greedy, ""), "/"); got == "HTTP/1.1 200 OK" {
				served++
			} else {
				refused = got
			}
		}
		if refused != "HTTP/1.1 503 Service Unavailable" || served < lentToAll-10 {
			t.Errorf("after %d connections the next one gets %q", served, refused)
		}
		if !strings.Contains(log.String(), "hold too much of limits.memory") {
			t.Errorf("the log says %q", log)
		}
		if got := get(dialFrom(t, e, modest, ""), "/"); got != "HTTP/1.1 200 OK" {
			t.Errorf("somebody else gets %q", got)
		}
	}
}

// Whom a trusted proxy speaks for is not known when it connects.
func TestConnectionsOfTrustedProxiesAreLent(t *testing.T) {
	memory := budget.New(4 << 20)
	e, _ := serve(t, from, Options{Memory: memory, Proxies: trusting([]string{greedy + "/32"})})
	for i := range 250 {
		if got := get(dialFrom(t, e, greedy, ""), "/"); got != "HTTP/1.1 200 OK" {
			t.Fatalf("connection %d gets %q", i, got)
		}
	}
}

// A frame that is announced has a buffer at once, and nothing forces a client to send it.
func TestOverHTTP2WhatAClientNeedNotSendIsBounded(t *testing.T) {
	opt := options(t, "h2", false)
	e, _ := serve(t, from, opt)
	said := untilTooLarge(t, dialFrom(t, e, greedy, "h2"))
	for id, want := range map[http2.SettingID]uint32{
		http2.SettingMaxFrameSize: 16 << 10, http2.SettingMaxConcurrentStreams: 250,
		http2.SettingHeaderTableSize: 4 << 10, http2.SettingInitialWindowSize: 256 << 10,
	} {
		if said[id] != want {
			t.Errorf("%v is %d, want %d", id, said[id], want)
		}
	}
	if got := said[http2.SettingMaxHeaderListSize]; got < 64<<10 || got > 72<<10 {
		t.Errorf("heads may have %d bytes", got)
	}
}

// The listener for the people who run the bridge asks for a token, but only once a request is there.
func TestTheBoundsOfRequestsHoldAsideToo(t *testing.T) {
	cert, key, _ := testcert.Write(t, t.TempDir(), 1)
	a, err := OpenAside(t.Context(), "admin", "127.0.0.1:0", Files{cert, key}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- a.Serve(from) }()
	t.Cleanup(func() { a.Shutdown(); <-served })
	dialAside := func(protocol string) net.Conn {
		conn, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	if said := untilTooLarge(t, dialAside("h2")); said[http2.SettingMaxHeaderListSize] > 72<<10 {
		t.Errorf("heads may have %d bytes", said[http2.SettingMaxHeaderListSize])
	}
	conn := dialAside("http/1.1")
	_, _ = io.WriteString(conn, unfinished(80<<10))
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "431") {
		t.Errorf("a long head gets %q", line)
	}
}

// untilTooLarge announces a frame of a mebibyte, and returns the settings that were said until
// that was refused.
func untilTooLarge(t *testing.T, conn net.Conn) map[http2.SettingID]uint32 {
	t.Helper()
	_, _ = io.WriteString(conn, preface+"\x10\x00\x00\x00\x00\x00\x00\x00\x01") // DATA
	framer, said := http2.NewFramer(io.Discard, conn), map[http2.SettingID]uint32{}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("%v, before the frame was refused", err)
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			_ = frame.ForeachSetting(func(s http2.Setting) error { said[s.ID] = s.Val; return nil })
		case *http2.GoAwayFrame:
			if frame.ErrCode != http2.ErrCodeFrameSize {
				t.Errorf("it ends with %v", frame.ErrCode)
			}
			_, _ = io.Copy(io.Discard, conn) // until it is closed, a second later
			return said
		}
	}
}
