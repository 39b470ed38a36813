//go:build linux

package legacy

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/h1"
	"github.com/mcpbridge/bridge/mcp"
)

// A client that closes its sending half counts as gone, and may yet read: an empty response would look like an answer.
func TestAClientThatIsTakenForGoneGetsNoEmptyResponse_E12(t *testing.T) {
	defer func(usual func(http.Handler, *http.Server) server) { inFront = usual }(inFront)
	for name, through := range map[string]func(http.Handler, *http.Server) server{
		"the usual server": inFront,
		"http: standard":   func(h http.Handler, s *http.Server) server { return h1.NewStandard(h, s) },
	} {
		inFront = through
		for what, request := range map[string][2]string{
			"one that may be a stream": {hold, ""}, "one that is none": {hold, "application/json"}, "a batch": {`[` + hold + `]`, ""},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				b := newFake()
				_, p := serve(t, Options{}, b)
				p.initialize(mcp.V20250326)
				l := dialWire(t, p)
				r := p.request(http.MethodPost, request[0])
				if request[1] != "" {
					r.Header.Set("Accept", request[1])
				}
				l.send(r)
				k := <-b.held
				_ = l.conn.(*net.TCPConn).CloseWrite()
				got, err := io.ReadAll(l.r)
				k.finish(`{}`)
				if len(got) > 0 || err != nil {
					t.Errorf("it gets %q, %v", got, err)
				}
			})
		}
	}
}

// One that waits for its turn is given it no more.
func TestWhoLeavesBeforeItsTurnGetsNoResponse(t *testing.T) {
	b := newFake()
	b.modern = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is served") })
	queue := turns.New(1)
	if _, err := queue.Enter(t.Context(), turns.Who{Principal: "somebody else"}); err != nil {
		t.Fatal(err)
	}
	_, p := serve(t, Options{Turns: queue}, b)
	l := dialWire(t, p)
	r := p.request(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	r.Header.Set("MCP-Protocol-Version", string(mcp.V20260728))
	l.send(r)
	_ = l.conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(l.r); len(got) > 0 || err != nil {
		t.Errorf("it gets %q, %v", got, err)
	}
}
