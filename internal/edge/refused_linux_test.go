package edge

import (
	"bytes"
	"io"
	"net"
	"strings"
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
	}{{"lean", false}, {"standard", true}} {
		memory := budget.New(12 << 20)
		e, _ := serve(t, from, Options{Memory: memory, StandardHTTP: way.standard})
		memory.Guest(e.tenant(&net.TCPAddr{IP: net.ParseIP(greedy)})).Charge(7 << 20)
		var silent []net.Conn
		for range 64 + 150 { // the first of them are lent
			silent = append(silent, dialFrom(t, e, greedy, ""))
			if len(silent) == 64 {
				eventually(t, "they are let in", func() bool { return memory.Used() >= 7<<20+64*12<<10 })
			}
		}
		eventually(t, way.name+": beside them one that asks is told", func() bool { // while they still arrive it may make room, too
			got := whole(dialFrom(t, e, greedy, ""))
			return strings.Contains(got, "503") && strings.Contains(got, "this address holds too much")
		})
		told := 0
		for _, conn := range silent[64:] {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if text, _ := io.ReadAll(conn); bytes.Contains(text, []byte("503")) {
				told++
			}
		}
		if told > 50 {
			t.Errorf("%s: %d of 150 that say nothing keep their places until they are told", way.name, told)
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
