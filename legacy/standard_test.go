//go:build linux

package legacy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/legacy/h1"
	"github.com/mcpbridge/bridge/mcp"
)

// Streams are parked, and their connections come back, when net/http serves them.
func TestParkingThroughNetHTTP(t *testing.T) {
	defer func(usual func(http.Handler, *http.Server) server) { inFront = usual }(inFront)
	for name, through := range map[string]func(http.Handler, *http.Server) server{
		"net/http's server": func(_ http.Handler, s *http.Server) server { return s },
		"http: standard":    func(h http.Handler, s *http.Server) server { return h1.NewStandard(h, s) },
	} {
		inFront = through
		t.Run(name, func(t *testing.T) {
			t.Run("call", TestParkedCallGoesOnAndItsConnectionServesFurtherRequests)
			t.Run("GET", TestParkedGetDeliversResumesAndReplays_E21)
			t.Run("hang-up", TestHangUpOfAParkedCallIsNoCancellation_E12_E20)
			t.Run("sent ahead", TestRequestSentAheadIsServedAfterTheStream)
			t.Run("close", TestConnectionIsClosedWhenTheClientWantsIt)
		})
	}
}

// What the lean server hands to net/http is parked as well.
func TestStreamOfAConnectionThatNetHTTPTookOverIsParked(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l := dialWire(t, p)
	for range 2 {
		r := p.request("POST", hold)
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
		l.send(r)
		k := <-b.held
		k.Send([]byte(note))
		resp := l.response()
		waitParked(t, h, 1, 0)
		k.finish(`{}`)
		if events := readEvents(t, resp).rest(); len(events) != 2 || !strings.Contains(events[1], "result") {
			t.Fatalf("%q", events)
		}
		waitParked(t, h, 0, 1)
		l.send(p.request("POST", ping)) // back at the lean server
		want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	}
}
