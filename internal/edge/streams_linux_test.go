package edge

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/legacy/web"
)

// unread is a client over HTTP/2 that opens no window for the bodies of responses.
type unread struct {
	*http2.Framer
	conn net.Conn
	next uint32
}

func newUnread(t *testing.T, e *Edge, address string) *unread {
	t.Helper()
	conn := dialFrom(t, e, address, "")
	u := &unread{http2.NewFramer(conn, conn), conn, 1}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = u.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	return u
}

// ask begins requests, all at once, whose heads are as large as large says.
func (u *unread) ask(requests, large int) {
	var block, out bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for name, value := range map[string]string{":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a"} {
		_ = fields.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: true})
	}
	_ = fields.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", large), Sensitive: true})
	framer := http2.NewFramer(&out, nil)
	for range requests {
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: u.next, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		u.next += 2
	}
	_, _ = u.conn.Write(out.Bytes())
}

// statuses reads so many responses' heads, or until the connection ends.
func (u *unread) statuses(responses int) map[string]int {
	of, read := map[string]int{}, 0
	u.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	for read < responses {
		frame, err := u.ReadFrame()
		if err != nil {
			return of
		}
		if head, ok := frame.(*http2.MetaHeadersFrame); ok {
			of[head.PseudoValue("status")]++
			read++
		}
	}
	return of
}

var said = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// A response for which there is no window keeps what its request has taken.
func TestResponsesThatAreNotTakenAreCharged(t *testing.T) {
	opt := Options{Memory: budget.New(64 << 20)}
	e, _ := serve(t, said, opt)
	u := newUnread(t, e, greedy)
	const requests, large = 100, 8 << 10
	u.ask(requests/2, 0)
	u.ask(requests/2, large)
	if of := u.statuses(requests); of["200"] != requests {
		t.Fatalf("the answers are %v", of)
	}
	if used := opt.Memory.Used(); used < requests*meter.StreamCost+requests/2*large {
		t.Errorf("%d bytes are charged", used)
	}
	_ = u.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 10})
	eventually(t, "what they took is given back", func() bool { return opt.Memory.Used() < 64<<10 })
	_ = u.conn.Close()
	eventually(t, "so is the connection", func() bool { return opt.Memory.Used() == 0 })
}

// Whoever takes no responses is refused, and the others are served.
func TestWhoTakesNoResponsesIsRefusedAndTheOthersAreServed(t *testing.T) {
	opt := Options{Memory: budget.New(32 << 20)}
	e, log := serve(t, said, opt)
	const requests = 200
	for range 2 * opt.Memory.Limit() / (requests * meter.StreamCost) {
		u := newUnread(t, e, greedy)
		u.ask(requests, 0)
		u.statuses(requests)
	}
	opt.Memory.Guest(web.Stranger(greedy + ":1")).Charge(1 << 20) // some of its connections have been cut off
	u := newUnread(t, e, greedy)
	u.ask(20, 0) // some are lent, others refused, or this connection is cut off too
	of := u.statuses(20)
	if others := len(of) - min(of["200"], 1) - min(of["503"], 1); of["200"] == 20 || others > 0 {
		t.Errorf("a few more are answered %v", of)
	}
	if used := opt.Memory.Used(); used > opt.Memory.Limit()*2/3 {
		t.Errorf("%d bytes are held", used)
	}
	log.expect(t, "hold too much of limits.memory")
	if got := get(dialFrom(t, e, modest, ""), "/"); got != "HTTP/1.1 200 OK" {
		t.Errorf("somebody else gets %q", got)
	}
	u = newUnread(t, e, modest)
	u.ask(10, 0)
	if of := u.statuses(10); of["200"] != 10 {
		t.Errorf("somebody else gets %v over HTTP/2", of)
	}
}

// A refusal that nobody is charged for does not wait for a window.
func TestOverHTTP2TooManyFieldsAreRefusedWithoutABody(t *testing.T) {
	e, _ := serve(t, said, Options{})
	u := newUnread(t, e, greedy)
	block := "\x82\x84\x86\x41\x01a" + strings.Repeat("\x8f", 1100) // an entry of the static table, over and over
	_ = u.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block), EndHeaders: true, EndStream: true})
	u.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	for {
		frame, err := u.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if head, ok := frame.(*http2.MetaHeadersFrame); ok {
			if head.PseudoValue("status") != "431" || !head.StreamEnded() {
				t.Errorf("it is answered %s, ended: %t", head.PseudoValue("status"), head.StreamEnded())
			}
			return
		}
	}
}

// What net/http answers by itself, a head that is malformed or too long, is charged, too.
func TestAnswersThatAreNotTakenToBadHeadsAreCharged(t *testing.T) {
	for protocol, secured := range map[string]bool{"": false, "h2": true} {
		opt := options(t, protocol, false)
		opt.Memory = budget.New(32 << 20)
		e, log := serve(t, said, opt)
		held := 0
		for range 60 {
			conn := dialFrom(t, e, greedy, protocol)
			var out bytes.Buffer
			framer := http2.NewFramer(&out, nil)
			out.WriteString(http2.ClientPreface)
			_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			block := "\x82\x84\x86\x41\x01a" + "\x10\x0akeep-alive\x01x" // of HTTP/1
			for id := range uint32(200) {
				_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*id + 1, BlockFragment: []byte(block), EndHeaders: true, EndStream: true})
			}
			_, _ = conn.Write(out.Bytes())
			u := &unread{http2.NewFramer(conn, conn), conn, 1}
			if of := u.statuses(200); of["400"] == 200 {
				held++
			}
			if used := opt.Memory.Used(); used < int64(min(held, 3)*200*meter.StreamCost) {
				t.Fatalf("TLS %t: %d connections are held, and %d bytes charged", secured, held, used)
			}
		}
		if used := opt.Memory.Used(); held == 0 || used > opt.Memory.Limit()*2/3 {
			t.Errorf("TLS %t: %d connections are held, %d bytes charged", secured, held, used)
		}
		log.expect(t, "hold too much of limits.memory")
		if got := get(dialFrom(t, e, modest, strings.Replace(protocol, "h2", "http/1.1", 1)), "/"); got != "HTTP/1.1 200 OK" {
			t.Errorf("TLS %t: somebody else gets %q", secured, got)
		}
	}
}
