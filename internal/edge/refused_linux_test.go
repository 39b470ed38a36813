package edge

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// whole asks once on a connection and returns all that comes of it.
func whole(conn net.Conn) string {
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	text, _ := io.ReadAll(conn)
	return string(text)
}

// What is refused takes memory, too, until it is gone, and nobody is charged for it: connections that say nothing make
// room for the next ones of their address, so that a flood of them takes nothing from others.
func TestConnectionsThatAreRefusedMakeRoomForEachOther(t *testing.T) {
	for _, way := range []struct {
		name     string
		standard bool
		cost     int // of a connection
	}{{"lean", false, 12 << 10}, {"standard", true, 20 << 10}} {
		memory := budget.New(12 << 20)
		e, _ := serve(t, from, Options{Memory: memory, StandardHTTP: way.standard})
		memory.Guest(e.tenant(&net.TCPAddr{IP: net.ParseIP(greedy)})).Charge(7 << 20)
		for range 64 {
			dialFrom(t, e, greedy, "")
		}
		eventually(t, "they are let in", func() bool { return memory.Used() >= int64(7<<20+64*way.cost) })
		var told, cut atomic.Int32
		for range 150 {
			silent := dialFrom(t, e, greedy, "")
			go func() {
				if text, _ := io.ReadAll(silent); bytes.Contains(text, []byte("503")) {
					told.Add(1)
				} else {
					cut.Add(1)
				}
			}()
		}
		eventually(t, "all but the last make room", func() bool { return told.Load()+cut.Load() >= 134 }) // 16 of an address stay
		if got := whole(dialFrom(t, e, greedy, "")); !strings.Contains(got, "503") || !strings.Contains(got, "this address holds too much") {
			t.Errorf("%s: beside them one that asks gets %q", way.name, got)
		}
		if got := told.Load(); got > 50 {
			t.Errorf("%s: %d of 150 that say nothing keep their places until they are told", way.name, got)
		}
	}
}

// Who is refused for what others hold is not told to hold it.
func TestTheAnswerSaysWhetherAnAddressHoldsTooMuchOrAllDo(t *testing.T) {
	for _, standard := range []bool{false, true} {
		memory := budget.New(4 << 20)
		memory.Guest("others").Charge(6 << 20)
		e, _ := serve(t, from, Options{Memory: memory, StandardHTTP: standard})
		got := whole(dialFrom(t, e, modest, ""))
		if !strings.Contains(got, "503") || strings.Contains(got, "this address") || !strings.Contains(got, "short of memory") {
			t.Errorf("without memory a newcomer gets %q", got)
		}
	}
}

// Who is refused may be in the midst of a large request: a connection that is closed with bytes unread is reset, and the
// answer is lost with what is on its way.
func TestWhoIsRefusedInALargeRequestGetsTheAnswer(t *testing.T) {
	for name, standard := range map[string]bool{"lean": false, "standard": true} {
		memory := budget.New(4 << 20)
		memory.Guest("others").Charge(6 << 20)
		e, _ := serve(t, from, Options{Memory: memory, StandardHTTP: standard})
		for range 5 {
			conn := dialFrom(t, e, modest, "")
			_ = conn.SetDeadline(time.Now().Add(patience))
			head := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2097152\r\n\r\n"
			if _, err := conn.Write(append([]byte(head), make([]byte, 2<<20)...)); err != nil {
				t.Errorf("%s: while it sends: %v", name, err)
			}
			if got, err := io.ReadAll(conn); err != nil || !bytes.Contains(got, []byte("503")) {
				t.Errorf("%s: it gets %q, %v", name, got, err)
			}
		}
	}
}
